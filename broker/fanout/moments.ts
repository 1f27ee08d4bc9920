export type Moments = ReturnType<typeof createMoments>

/** Numbers what happens in this node: of two things it is certain which one was first, whatever the clock says. */
export function createMoments() {
  let last = 0
  return { next: (): number => ++last }
}
