// Everything by keyboard: what keys do anywhere, and what they do in a picture.

const OFF = "moraine-view-keys-off";

const TYPING = new Set(["INPUT", "SELECT", "TEXTAREA"]);

export function listen(app) {
  const single = document.getElementById("single-keys");
  single.checked = localStorage.getItem(OFF) === null;
  single.addEventListener("change", () => (single.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1")));
  document.addEventListener("pointerdown", () => document.body.classList.remove("by-keys"), true);
  document.addEventListener(
    "keydown",
    (event) => {
      if (["Tab", "Enter"].includes(event.key) || event.key.startsWith("Arrow")) document.body.classList.add("by-keys");
      const pane = app.panes.find((p) => p.mapElement.contains(event.target));
      if (pane && inPicture(app, pane, event)) {
        event.preventDefault();
        event.stopPropagation();
      }
    },
    true,
  );
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || TYPING.has(event.target.tagName)) return;
    if (document.querySelector("dialog[open]") || !single.checked) return;
    if (anywhere(app, event.key)) event.preventDefault();
  });
}

function inPicture(app, pane, event) {
  const isSelf = event.target === pane.mapElement;
  if (event.key === "Enter" && isSelf) {
    app.pickAt(pane, pane.center());
    return true;
  }
  if (event.altKey && event.key.startsWith("Arrow")) {
    pane.step({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key]);
    return true;
  }
  return false;
}

function anywhere(app, key) {
  const pane = app.panes[app.active];
  switch (key) {
    case "[":
      return app.stepDate(-1) || true;
    case "]":
      return app.stepDate(1) || true;
    case "r":
      return app.setReference(pane, pane.pointed ?? pane.center()) || true;
    case "l":
      return app.lineAt(pane, pane.pointed ?? pane.center()) || true;
    case "Backspace":
    case "Delete":
      return app.dropPick(-1) || true;
    case "?":
      return app.help() || true;
    default:
      if (/^[1-4]$/.test(key) && app.panes[Number(key) - 1]) {
        app.panes[Number(key) - 1].mapElement.focus();
        return true;
      }
      return false;
  }
}
