// Time series.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

export interface Series {
  label: string;
  color: string;
  values: (number | null)[];
}

interface Props {
  times: number[];
  series: Series[];
  /** Says the same in words. */
  description: string;
  /** The first two series are the ends of an interval, which is filled. Values may be negative. */
  interval?: boolean;
}

const height = 180;

/** Draws series over times (Unix seconds). */
export function Chart({ times, series, description, interval = false }: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const labels = series.map((s) => s.label).join("\n");
  useEffect(() => {
    const el = box.current!;
    const css = getComputedStyle(el);
    const axis = { stroke: css.color, grid: { stroke: css.getPropertyValue("--line") }, ticks: { stroke: css.getPropertyValue("--line") } };
    const options: uPlot.Options = {
      width: Math.max(200, el.clientWidth), height, legend: { show: true }, cursor: { drag: { x: false, y: false } },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"), // as all times of the console
      scales: { y: { range: interval ? around0 : (_, __, max) => [0, Math.max(1, max)] } },
      axes: [axis, axis],
      series: [
        {},
        ...series.map((s) => ({ label: s.label, stroke: s.color, width: 1.5, points: { show: interval }, ...(interval ? {} : { fill: s.color + "55" }) })),
      ],
      ...(interval ? { bands: [{ series: [2, 1] as uPlot.Band.Bounds, fill: series[0]!.color + "44" }] } : {}),
    };
    plot.current = new uPlot(options, [times, ...series.map((s) => s.values)], el);
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(200, el.clientWidth), height }));
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

/** A range that contains 0, with a margin. */
function around0(_: uPlot, min: number | null, max: number | null): [number, number] {
  const low = Math.min(0, min ?? 0);
  const high = Math.max(0, max ?? 0);
  const margin = (high - low || 1) / 12;
  return [low - margin, high + margin];
}
