// Shapes that mark places: told apart without their colors.

export const SHAPES = /** @type {const} */ (["circle", "square", "triangle", "diamond", "plus", "cross"]);

/** Outlines of the marks, in a square from -8 to 8. */
export const PATHS = {
  circle: "M6,0A6,6 0 1 1 -6,0A6,6 0 1 1 6,0Z",
  square: "M-5.5,-5.5H5.5V5.5H-5.5Z",
  triangle: "M0,-7L6.5,5H-6.5Z",
  diamond: "M0,-7.5L6.5,0L0,7.5L-6.5,0Z",
  plus: "M-2,-7H2V-2H7V2H2V7H-2V2H-7V-2H-2Z",
  cross: "M-6.5,-4L-4,-6.5L0,-2.5L4,-6.5L6.5,-4L2.5,0L6.5,4L4,6.5L0,2.5L-4,6.5L-6.5,4L-2.5,0Z",
};

const REFERENCE = "M-8,-8H-2V-6H-6V-2H-8ZM8,-8V-2H6V-6H2V-8ZM8,8H2V6H6V2H8ZM-8,8V2H-6V6H-2V8ZM-1.5,-1.5H1.5V1.5H-1.5Z";

/** @param {string} path @param {string} className */
function svg(path, className) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  made.setAttribute("viewBox", "-9 -9 18 18");
  made.setAttribute("class", className);
  made.setAttribute("aria-hidden", "true");
  const outline = document.createElementNS("http://www.w3.org/2000/svg", "path");
  outline.setAttribute("d", path);
  made.append(outline);
  return made;
}

/** The mark of a place, by its number. @param {number} index */
export function markOf(index) {
  return svg(PATHS[SHAPES[index % SHAPES.length]], `mark mark-${index % SHAPES.length}`);
}

export const referenceMark = () => svg(REFERENCE, "mark reference");

/** A ring around what is too small to be seen. */
export const ringMark = () => svg("M8,0A8,8 0 1 1 -8,0A8,8 0 1 1 8,0ZM6.5,0A6.5,6.5 0 1 0 -6.5,0A6.5,6.5 0 1 0 6.5,0Z", "mark ring");

/** A small cross. @param {string} className what it stands for */
export const plusMark = (className) => svg(PATHS.plus, `mark ${className}`);
