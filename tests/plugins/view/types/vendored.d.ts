// What the page uses of files of others, which are scripts without types.

declare const L: any;
declare const uPlot: any;

type LatLng = { lat: number; lng: number };

interface Window {
  /** For tests, and for the curious. */
  moraine: import("../../../../plugins/view/moraine_view/web/static/main.js").App;
}
