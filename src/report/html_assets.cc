#include "report/html_assets.h"

#include <string_view>

namespace trainyard::report {

const std::string_view kStyle = R"css(
:root {
  --page: #f6f7f9; --card: #ffffff; --ink: #182230; --soft: #667085; --line: #e4e7ec; --hover: #f6f8fb;
  --ok: #3f73d8; --ok-soft: #e8effc; --bad: #cf3d3d; --bad-soft: #fdecec; --oom: #d98718;
  --oom-soft: #fdf3e1; --run: #8fb1ee; --off: #a4adba; --on-bar: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0e1116; --card: #161a21; --ink: #e4e8ee; --soft: #949eae; --line: #282e38; --hover: #1b212a;
    --ok: #6795ea; --ok-soft: #1b2740; --bad: #ee6a6a; --bad-soft: #3a1d20; --oom: #e5a548;
    --oom-soft: #362a17; --run: #3d5b94; --off: #596372; --on-bar: #0b1220;
  }
}
* { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums;
}
main { max-width: 1320px; margin: 0 auto; padding: 40px 24px 56px; }
h1 { font-size: 28px; line-height: 1.2; font-weight: 650; letter-spacing: -0.02em; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 15px; font-weight: 600; margin: 0; }
a { color: var(--ok); text-decoration: none; }
a:hover { text-decoration: underline; }
.job { color: var(--soft); margin: 0 0 4px; }
.title { display: flex; flex-wrap: wrap; align-items: center; gap: 12px; }
.chip { font-size: 12px; font-weight: 600; letter-spacing: .03em; padding: 2px 10px; border-radius: 99px; background: var(--line); color: var(--soft); }
.chip.ok { background: var(--ok-soft); color: var(--ok); }
.chip.bad { background: var(--bad-soft); color: var(--bad); }
.facts { color: var(--soft); font-size: 13px; margin: 8px 0 0; display: flex; flex-wrap: wrap; gap: 2px 20px; }
.facts span { overflow-wrap: anywhere; }
.cause { margin: 12px 0 0; color: var(--bad); }
.share { display: flex; gap: 2px; height: 6px; margin: 24px 0 16px; border-radius: 3px; overflow: hidden; background: var(--line); }
.share i { display: block; min-width: 3px; }
i.ok { background: var(--ok); } i.bad { background: var(--bad); } i.oom { background: var(--oom); }
i.run { background: var(--run); } i.off { background: var(--off); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 12px; margin: 0 0 12px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px 14px; min-width: 0; }
.tile dt { color: var(--soft); font-size: 12.5px; }
.tile dd { margin: 2px 0 0; font-size: 24px; line-height: 1.2; font-weight: 600; letter-spacing: -0.01em; }
.tile dd.bad { color: var(--bad); }
.tile.wide { grid-column: span 2; }
.tile small { display: block; margin-top: 2px; font-size: 12.5px; font-weight: 400; letter-spacing: 0; color: var(--soft); overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin-top: 16px; }
.bar { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 8px 16px; padding: 14px 16px 12px; }
.note { color: var(--soft); font-size: 12.5px; margin: 0; padding: 0 16px 12px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; color: var(--soft); font-size: 12.5px; }
.legend i { display: inline-block; width: 9px; height: 9px; border-radius: 2px; margin-right: 6px; }
.scroll { overflow-x: auto; }
.tall { max-height: 460px; overflow-y: auto; }
.tall thead th { position: sticky; top: 0; background: var(--card); box-shadow: inset 0 -1px var(--line); }
.drawing { padding: 4px 16px 10px; }
.timeline { display: block; width: 100%; min-width: 720px; height: auto; }
.timeline rect.ok { fill: var(--ok); } .timeline rect.bad { fill: var(--bad); } .timeline rect.oom { fill: var(--oom); }
.timeline rect.run { fill: var(--run); } .timeline rect.off { fill: var(--off); }
.timeline g:hover rect { opacity: .8; }
.timeline .grid { stroke: var(--line); stroke-width: 1; }
.timeline .base { stroke: var(--line); stroke-width: 1; }
.timeline .tick { fill: var(--soft); font-size: 11px; }
.timeline .label { fill: var(--on-bar); font-size: 11px; pointer-events: none; }
.timeline .area { fill: var(--ok); opacity: .14; }
.timeline .curve { fill: none; stroke: var(--ok); stroke-width: 1.4; stroke-linejoin: round; }
table { width: 100%; border-collapse: collapse; font-size: 13px; }
th, td { text-align: left; padding: 7px 10px; white-space: nowrap; border-top: 1px solid var(--line); vertical-align: middle; }
th { color: var(--soft); font-weight: 500; font-size: 12.5px; padding-top: 6px; padding-bottom: 6px; }
th:first-child, td:first-child { padding-left: 16px; }
th:last-child, td:last-child { padding-right: 16px; }
th.n, td.n { text-align: right; }
tbody tr:hover { background: var(--hover); }
td.id { font-weight: 500; max-width: 340px; overflow: hidden; text-overflow: ellipsis; }
td.why { white-space: normal; min-width: 260px; overflow-wrap: anywhere; }
div.curves { display: flex; flex-wrap: wrap; gap: 12px; padding: 4px 16px 14px; }
svg.curve { width: 460px; max-width: 100%; }
svg.curve polyline { fill: none; stroke: var(--ok); stroke-width: 1.5; stroke-opacity: .75; }
svg.curve polyline:hover { stroke: var(--oom); stroke-width: 3; stroke-opacity: 1; }
svg.curve circle { fill: var(--ok); }
svg.curve circle:hover { fill: var(--oom); }
svg.curve .frame { fill: none; stroke: var(--line); }
svg.curve text { font-size: 11px; fill: var(--soft); }
svg.curve .key { font-size: 13px; fill: var(--ink); }
td.why summary { cursor: pointer; }
td.why pre { white-space: pre-wrap; font-size: 12px; margin: 6px 0 0; }
td.rest { max-width: 260px; overflow: hidden; text-overflow: ellipsis; color: var(--soft); font-size: 12px; }
td.time, td.logs { color: var(--soft); }
td.logs a + a { margin-left: 10px; }
.dot { display: inline-block; width: 8px; height: 8px; border-radius: 50%; margin-right: 8px; }
.word { font-size: 12px; letter-spacing: .02em; }
.word.bad { color: var(--bad); font-weight: 600; }
.star { margin-left: 8px; font-size: 11px; font-weight: 600; padding: 1px 7px; border-radius: 99px; background: var(--ok-soft); color: var(--ok); }
.warn { color: var(--oom); }
.meter { display: inline-block; width: 56px; height: 5px; margin-right: 10px; border-radius: 3px; background: var(--line); vertical-align: 2px; overflow: hidden; }
.meter i { display: block; height: 100%; border-radius: 3px; background: var(--ok); }
.meter.over i { background: var(--oom); }
th button { all: unset; cursor: pointer; border-radius: 4px; }
th button:hover { color: var(--ink); }
th button:focus-visible, input:focus-visible, a:focus-visible { outline: 2px solid var(--ok); outline-offset: 2px; }
th[aria-sort] button { color: var(--ink); }
th[aria-sort="ascending"] button::after { content: " \2191"; }
th[aria-sort="descending"] button::after { content: " \2193"; }
input { font: inherit; font-size: 13px; color: var(--ink); background: var(--page); border: 1px solid var(--line); border-radius: 7px; padding: 5px 11px; width: 240px; max-width: 100%; }
input::placeholder { color: var(--soft); }
footer { color: var(--soft); font-size: 12.5px; margin-top: 20px; display: flex; flex-wrap: wrap; gap: 4px 20px; justify-content: space-between; }
@media (max-width: 640px) { main { padding: 24px 14px 40px; } .tile.wide { grid-column: auto; } }
@media print {
  :root { --page: #fff; --card: #fff; --ink: #000; --soft: #555; --line: #ccc; --hover: #fff; --on-bar: #fff;
    --ok: #3f73d8; --ok-soft: #e8effc; --bad: #cf3d3d; --bad-soft: #fdecec; --oom: #d98718; --run: #8fb1ee; --off: #a4adba; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { max-width: none; padding: 0; }
  input, .logs { display: none; }
  .scroll { overflow: visible; max-height: none; }
  .timeline { min-width: 0; }
  table { font-size: 10px; }
  th, td { padding: 3px 5px; white-space: normal; }
  thead { display: table-header-group; }
  tr, .tile { break-inside: avoid; }
}
)css";

const std::string_view kScript = R"js(
(function () {
  "use strict";
  document.querySelectorAll("table").forEach(function (table) {
    var body = table.tBodies[0];
    var heads = Array.from(table.tHead.rows[0].cells);
    function value(row, column) {
      var cell = row.cells[column];
      if (!cell) return null;
      var text = cell.dataset.s !== undefined ? cell.dataset.s : cell.textContent;
      if (text === "" || text === "-") return null;
      var number = Number(text);
      return Number.isNaN(number) ? text : number;
    }
    function compare(a, b) {
      if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
      return typeof a === "number" ? -1 : 1;
    }
    heads.forEach(function (head, column) {
      var button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", function () {
        var up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        Array.from(body.rows)
          .map(function (row) { return [value(row, column), row]; })
          .sort(function (a, b) {
            if (a[0] === null || b[0] === null) return (a[0] === null) - (b[0] === null);
            return up ? compare(a[0], b[0]) : compare(b[0], a[0]);
          })
          .forEach(function (pair) { body.appendChild(pair[1]); });
      });
    });
  });
  var filter = document.getElementById("filter");
  var table = document.getElementById("tasks");
  if (!filter || !table) return;
  var rows = Array.from(table.tBodies[0].rows);
  var texts = rows.map(function (row) { return (row.title + " " + row.textContent).toLowerCase(); });
  filter.hidden = false;
  filter.addEventListener("input", function () {
    var words = filter.value.toLowerCase().split(/\s+/);
    rows.forEach(function (row, i) {
      row.hidden = !words.every(function (word) { return texts[i].includes(word); });
    });
  });
})();
)js";

}  // namespace trainyard::report
