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
