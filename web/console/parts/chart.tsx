import 'uplot/dist/uPlot.min.css'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'

/** One curve of a chart. */
interface Series {
  name: string
  /** Name of a colour of the style sheet. */
  color: string
  values: readonly (number | null)[]
  isFilled?: boolean
}

const height = 190
/** The time that a chart shows, even if the node has run for less. */
const shownSeconds = 3_600

/** A chart of values over time. Screen readers get `summary` in place of the picture. */
export function Chart(props: {
  title: string
  summary: string
  /** Seconds since the epoch. */
  times: readonly number[]
  series: readonly Series[]
  /** Writes a value as text, for the axis and the legend. */
  words: (value: number) => string
  /** A value that must not be exceeded. It is drawn as a dashed line. */
  limit?: number
}) {
  const { title, summary, times, series } = props
  const plot = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | undefined>(undefined)
  const data: uPlot.AlignedData = [[...times], ...series.map(({ values }) => [...values])]
  const latest = useRef(data)
  latest.current = data

  useEffect(() => {
    const element = plot.current
    if (!element) return
    const dark = matchMedia('(prefers-color-scheme: dark)')
    const draw = () => {
      chart.current?.destroy()
      chart.current = new uPlot(optionsOf(props, element), latest.current, element)
    }
    const resized = new ResizeObserver(() => {
      if (element.clientWidth > 0) chart.current?.setSize({ width: element.clientWidth, height })
    })
    draw()
    resized.observe(element)
    dark.addEventListener('change', draw)
    return () => {
      resized.disconnect()
      dark.removeEventListener('change', draw)
      chart.current?.destroy()
      chart.current = undefined
    }
  }, [series.map(({ name }) => name).join()])
  useEffect(() => chart.current?.setData(data), [times.at(-1), times.length])

  return (
    <figure class="chart panel">
      <figcaption>
        <h2>{title}</h2>
        <p>{summary}</p>
      </figcaption>
      <div ref={plot} class="plot" aria-hidden="true" />
    </figure>
  )
}

function optionsOf(
  { series, words, limit }: Parameters<typeof Chart>[0],
  element: HTMLElement,
): uPlot.Options {
  const style = getComputedStyle(element)
  const color = (name: string) => style.getPropertyValue(name).trim()
  const soft = color('--soft')
  const axis: uPlot.Axis = {
    stroke: soft,
    font: `12px ${style.fontFamily}`,
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: Math.max(element.clientWidth, 200),
    height,
    cursor: { points: { size: 6 } },
    legend: { live: true },
    scales: {
      x: { range: (_chart, _min, max) => [max - shownSeconds, max] },
      y: { range: (_chart, _min, max) => [0, Math.max((max ?? 0) * 1.1, (limit ?? 0) * 1.08, 4)] },
    },
    series: [
      { value: (_chart, time) => (time === null ? '' : fullClock.format(time * 1000)) },
      ...series.map(
        ({ name, color: colorName, isFilled }): uPlot.Series => ({
          label: name,
          stroke: color(colorName),
          width: 2,
          ...(isFilled && { fill: `${color(colorName)}1f` }),
          points: { show: false },
          spanGaps: false,
          value: (_chart, value) => (value === null || value === undefined ? '–' : words(value)),
        }),
      ),
    ],
    axes: [
      { ...axis, size: 32, values: (_chart, ticks) => ticks.map((time) => clock.format(time * 1000)) },
      { ...axis, size: 64, values: (_chart, ticks) => ticks.map(words) },
    ],
    hooks: limit === undefined ? {} : { draw: [(chart) => drawLimit(chart, limit, color('--bad'))] },
  }
}

const fullClock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })

function drawLimit(chart: uPlot, limit: number, color: string): void {
  const { ctx, bbox } = chart
  const y = chart.valToPos(limit, 'y', true)
  ctx.save()
  ctx.strokeStyle = color
  ctx.lineWidth = devicePixelRatio
  ctx.setLineDash([6 * devicePixelRatio, 5 * devicePixelRatio])
  ctx.beginPath()
  ctx.moveTo(bbox.left, y)
  ctx.lineTo(bbox.left + bbox.width, y)
  ctx.stroke()
  ctx.restore()
}
