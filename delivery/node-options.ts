/** The Node options of the hub's own process, for example loaders, without those that measure it or set its heap. */
export function nodeOptions(heapMb: number): string[] {
  const isOwn = /^--(inspect|cpu-prof|heap|prof|max-|min-|watch|test|report|trace)/
  return [...process.execArgv.filter((option) => !isOwn.test(option)), `--max-old-space-size=${heapMb}`]
}
