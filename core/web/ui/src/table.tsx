// A table that sorts, filters, pages and downloads its rows.
import type { ComponentChildren, JSX } from "preact";
import { useMemo } from "preact/hooks";
import { setQuery, useLocation } from "./router";

export interface Column<T> {
  name: string;
  /** The value by which rows are sorted, filtered and downloaded. */
  value: (row: T) => string | number;
  /** What the cell shows; the value if it is absent. */
  cell?: (row: T) => ComponentChildren;
  numeric?: boolean;
}

interface Props<T> {
  /** A name that is unique on the page: sorting and filter are kept in the address under it. */
  name: string;
  caption: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
  /** The text in place of rows if there are none. */
  empty: string;
}

const pageSize = 100;

export function Table<T>({ name, caption, columns, rows, keyOf, empty }: Props<T>): JSX.Element {
  const query = useLocation().query;
  const filter = query.get(name + ".filter") ?? "";
  const [by, order] = (query.get(name + ".sort") ?? "").split(":");
  const shown = useMemo(() => arrange(rows, columns, filter, columns.find((c) => c.name === by), order === "down"), [rows, columns, filter, by, order]);
  const pages = Math.max(1, Math.ceil(shown.length / pageSize));
  const page = Math.min(pages, Math.max(1, Number(query.get(name + ".page") ?? 1) || 1));
  const visible = shown.slice((page - 1) * pageSize, page * pageSize);
  const sort = (c: Column<T>) => setQuery({ [name + ".sort"]: c.name + (by === c.name && order !== "down" ? ":down" : ":up"), [name + ".page"]: "" });
  return (
    <section class="table">
      <div class="bar">
        <h2>{caption}</h2>
        <label>
          <span class="hidden">Filter {caption}</span>
          <input type="search" placeholder="Filter" value={filter} onInput={(e) => setQuery({ [name + ".filter"]: e.currentTarget.value, [name + ".page"]: "" })} />
        </label>
        <span class="count">{filter ? `${shown.length} of ${rows.length}` : rows.length}</span>
        <button type="button" onClick={() => download(name, columns, shown)}>
          Download<span class="hidden"> {caption} as CSV</span>
        </button>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <thead>
            <tr>
              {columns.map((c) => (
                <th key={c.name} scope="col" class={c.numeric ? "numeric" : ""} aria-sort={by === c.name ? (order === "down" ? "descending" : "ascending") : "none"}>
                  <button type="button" onClick={() => sort(c)}>
                    {c.name}
                    <span aria-hidden="true">{by === c.name ? (order === "down" ? " ▼" : " ▲") : ""}</span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {visible.map((row) => (
              <tr key={keyOf(row)}>
                {columns.map((c) => (
                  <td key={c.name} class={c.numeric ? "numeric" : ""}>
                    {c.cell ? c.cell(row) : c.value(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {shown.length === 0 && <p class="empty">{rows.length === 0 ? empty : "No row matches the filter."}</p>}
      </div>
      {pages > 1 && (
        <nav class="pages" aria-label={"Pages of " + caption}>
          <button type="button" disabled={page === 1} onClick={() => setQuery({ [name + ".page"]: String(page - 1) })}>
            Previous
          </button>
          <span>
            Page {page} of {pages}
          </span>
          <button type="button" disabled={page === pages} onClick={() => setQuery({ [name + ".page"]: String(page + 1) })}>
            Next
          </button>
        </nav>
      )}
    </section>
  );
}

function arrange<T>(rows: T[], columns: Column<T>[], filter: string, by: Column<T> | undefined, down: boolean): T[] {
  const text = filter.toLowerCase();
  const list = text ? rows.filter((r) => columns.some((c) => String(c.value(r)).toLowerCase().includes(text))) : [...rows];
  if (by) {
    const direction = down ? -1 : 1;
    list.sort((a, b) => {
      const x = by.value(a);
      const y = by.value(b);
      if (typeof x === "number" && typeof y === "number") return direction * (x - y);
      return direction * String(x).localeCompare(String(y), "en", { numeric: true });
    });
  }
  return list;
}

function download<T>(name: string, columns: Column<T>[], rows: T[]): void {
  const lines = [columns.map((c) => csv(c.name)), ...rows.map((r) => columns.map((c) => csv(c.value(r))))];
  save(`cede-${name}.csv`, new Blob([lines.map((l) => l.join(",")).join("\r\n") + "\r\n"], { type: "text/csv" }));
}

/** Saves a file as a download of the browser. */
export function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Quotes a value. A spreadsheet would run text that begins like a formula. */
function csv(value: string | number): string {
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;
  return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}
