/** A function that makes something of an object once, and remembers it for as long as the object is there. */
export function onceForEach<One extends object, Made extends object>(
  make: (one: One) => Made,
): (one: One) => Made {
  const made = new WeakMap<One, Made>()
  return (one) => {
    const known = made.get(one) ?? make(one)
    made.set(one, known)
    return known
  }
}
