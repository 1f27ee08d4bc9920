const told = new Set<string>()

/** Tells the authors of the page what is wrong, once. Visitors see the content of the element. */
export function tell(problem: string): void {
  if (told.has(problem)) return
  told.add(problem)
  console.warn(`<now-playing> ${problem}`)
}
