// The map of the nodes: a cell per node, filled by its allocations from low to high priority.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Cluster, NodeRow } from "./cluster";
import { Bands } from "./colors";
import { amount, count, percent } from "./format";
import { href, navigate } from "./router";

interface Layout {
  columns: number;
  size: number; // of a cell with its gap, in CSS pixels
}

/** Chooses the largest cells with which all nodes fit in the width and about 480 pixels. */
function layout(count: number, width: number): Layout {
  for (let size = 64; size > 4; size--) {
    const columns = Math.max(1, Math.floor(width / size));
    if (Math.ceil(count / columns) * size <= 480) return { columns, size };
  }
  return { columns: Math.max(1, Math.floor(width / 5)), size: 5 };
}

export function NodeMap({ cluster, version, resource }: { cluster: Cluster; version: number; resource: number }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [selected, select] = useState(0);
  const grid = useRef<Layout>({ columns: 1, size: 64 });
  const nodes = cluster.nodes;

  useEffect(() => {
    const parent = canvas.current!.parentElement!;
    const observer = new ResizeObserver(() => setWidth(parent.clientWidth));
    observer.observe(parent);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    if (width === 0) return;
    grid.current = layout(nodes.length, width);
    draw(canvas.current!, nodes, grid.current, width, resource, new Bands(priorities(cluster)), selected);
  }, [width, version, resource, selected, nodes.length]);

  const at = (e: MouseEvent): number => {
    const { columns, size } = grid.current;
    const column = Math.floor(e.offsetX / size);
    return column < columns ? Math.floor(e.offsetY / size) * columns + column : -1;
  };
  const key = (e: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid.current.columns, ArrowDown: grid.current.columns }[e.key];
    if (step !== undefined) {
      e.preventDefault();
      select((i) => Math.min(nodes.length - 1, Math.max(0, i + step)));
    } else if (e.key === "Enter" && nodes[selected]) navigate(href("nodes", nodes[selected]!.id));
  };
  const node = nodes[selected];
  return (
    <div class="map">
      <canvas
        ref={canvas} tabIndex={0} role="application" aria-label={`Map of ${count(nodes.length, "node", "nodes")}. Arrow keys move between nodes, Enter opens one.`}
        aria-describedby="map-node" onKeyDown={key}
        onMouseMove={(e) => { const i = at(e); if (i >= 0 && i < nodes.length) select(i); }}
        onClick={(e) => { const n = nodes[at(e)]; if (n) navigate(href("nodes", n.id)); }}
      />
      <p id="map-node" aria-live="polite">
        {node ? describe(node, cluster.resources, resource) : "There are no nodes."}
      </p>
    </div>
  );
}

/** The priorities of the groups that have allocations. */
export function priorities(cluster: Cluster): Set<number> {
  const set = new Set<number>();
  for (const a of cluster.allocs.values()) set.add(a.group.priority);
  return set;
}

function describe(n: NodeRow, resources: string[], i: number): string {
  const name = resources[i] ?? "";
  const lowest = n.allocs.reduce((low, a) => Math.min(low, a.group.priority), Infinity);
  const lines = [`${n.name}: ${n.state}`, `${n.allocs.length} allocations`];
  if (name) lines.push(`${amount(name, n.used[i] ?? 0)} of ${amount(name, n.capacity[i] ?? 0)} ${name} used (${percent(n.used[i] ?? 0, n.capacity[i] ?? 0)})`);
  if (n.allocs.length > 0) lines.push(`lowest priority ${lowest}`);
  return lines.join(", ");
}

function draw(canvas: HTMLCanvasElement, nodes: NodeRow[], { columns, size }: Layout, width: number, resource: number, bands: Bands, selected: number): void {
  const ratio = window.devicePixelRatio || 1;
  const height = Math.max(size, Math.ceil(nodes.length / columns) * size);
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = `${height}px`;
  const css = getComputedStyle(canvas);
  const c = canvas.getContext("2d")!;
  c.scale(ratio, ratio);
  const gap = size > 12 ? 2 : 1;
  const inner = size - gap;
  nodes.forEach((n, i) => {
    const x = (i % columns) * size;
    const y = Math.floor(i / columns) * size;
    c.fillStyle = css.getPropertyValue(n.state === "ready" ? "--cell" : n.state === "down" ? "--down" : "--paused");
    c.fillRect(x, y, inner, inner);
    const whole = n.capacity[resource] ?? 0;
    let bottom = y + inner;
    for (const [priority, use] of sums(n, resource)) {
      const part = whole > 0 ? Math.min(bottom - y, (inner * use) / whole) : 0;
      c.fillStyle = bands.color(priority);
      c.fillRect(x, bottom - part, inner, part);
      bottom -= part;
    }
    if (i === selected) {
      c.strokeStyle = css.getPropertyValue("--focus");
      c.lineWidth = 2;
      c.strokeRect(x + 1, y + 1, inner - 2, inner - 2);
    }
  });
}

/** The use of a resource on a node by priority, ascending. */
function sums(n: NodeRow, resource: number): [number, number][] {
  const by = new Map<number, number>();
  for (const a of n.allocs) by.set(a.group.priority, (by.get(a.group.priority) ?? 0) + (a.group.use[resource] ?? 0));
  return [...by].sort((a, b) => a[0] - b[0]);
}
