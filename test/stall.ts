const never = new Int32Array(new SharedArrayBuffer(4))

/** Keeps this process, and the node in it, from doing anything else. It takes no processor time. */
export function stall(ms: number): void {
  Atomics.wait(never, 0, 0, ms)
}
