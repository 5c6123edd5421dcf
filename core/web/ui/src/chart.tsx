// Time series.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

export interface Series {
  label: string;
  color: string;
  values: number[];
}

/** Draws series over times (Unix seconds). The description says the same in words. */
export function Chart({ times, series, description }: { times: number[]; series: Series[]; description: string }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const labels = series.map((s) => s.label).join("\n");
  useEffect(() => {
    const el = box.current!;
    const css = getComputedStyle(el);
    const axis = { stroke: css.color, grid: { stroke: css.getPropertyValue("--line") }, ticks: { stroke: css.getPropertyValue("--line") } };
    const options: uPlot.Options = {
      width: Math.max(200, el.clientWidth), height: 180, legend: { show: true }, cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_, __, max) => [0, Math.max(1, max)] } },
      axes: [axis, axis],
      series: [{}, ...series.map((s) => ({ label: s.label, stroke: s.color, fill: s.color + "55", width: 1.5, points: { show: false } }))],
    };
    plot.current = new uPlot(options, [times, ...series.map((s) => s.values)], el);
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(200, el.clientWidth), height: 180 }));
    resize.observe(el);
    return () => (resize.disconnect(), plot.current?.destroy());
  }, [labels]);
  useEffect(() => plot.current?.setData([times, ...series.map((s) => s.values)]), [times, series]);
  return (
    <figure class="chart">
      <div ref={box} aria-hidden="true" />
      <figcaption>{description}</figcaption>
    </figure>
  );
}
