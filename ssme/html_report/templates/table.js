"use strict";
// Sort by a click on a heading, and show only the rows that hold what is typed.
const order = new Intl.Collator(undefined, { numeric: true });
const keyOf = (row, i) => row.cells[i].dataset.value ?? row.cells[i].textContent.trim();
const compare = (a, b) => (isNaN(a) || isNaN(b) ? order.compare(a, b) : a - b);
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, i) => heading.firstChild.addEventListener("click", () => {
    const falling = heading.ariaSort === "ascending";
    headings.forEach((each) => each.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const keyed = [...table.tBodies[0].rows].map((row) => [keyOf(row, i), row]);
    const unknown = (key) => key === "nan";  // undefined numbers come last either way
    keyed.sort(([a], [b]) => unknown(a) - unknown(b) || (falling ? compare(b, a) : compare(a, b)));
    table.tBodies[0].append(...keyed.map(([, row]) => row));
  }));
}
for (const input of document.querySelectorAll("input[data-table]")) {
  const rows = [...document.getElementById(input.dataset.table).tBodies[0].rows];
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    input.parentElement.querySelector("output").textContent = words.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "";
  });
}
