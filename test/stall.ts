/** Keeps this process, and the node in it, from doing anything else. */
export function stall(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}
