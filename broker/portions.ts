/** Bytes that are delivered to everybody without a break. */
const maxAtOnce = 256 * 1024

/** What takes room in the buffers of subscribers. */
interface Sized {
  message: { payload: Buffer }
}

/**
 * Delivers at once, as a rule. A large event for many livestreams would overflow the buffer of a subscriber that
 * reads as fast as it can: the network gets a turn in between, and what is accepted meanwhile does not overtake it.
 */
export function createPortions() {
  /** The last of the deliveries that take their time, while there are any: what comes behind waits for it. */
  let delivering: Promise<void> | undefined

  /** Whether these can go out at once. */
  const fits = (items: readonly Sized[]) => !delivering && !isLarge(items)

  return {
    fits,

    /** Resolves when all have been delivered, in this order and behind those of earlier calls. */
    async deliver<Item extends Sized>(
      items: readonly Item[],
      deliverOne: (item: Item) => void,
    ): Promise<void> {
      if (fits(items)) {
        for (const item of items) deliverOne(item)
        return
      }
      const own = deliverSlowly(items, deliverOne, delivering)
      delivering = own
      try {
        await own
      } finally {
        if (delivering === own) delivering = undefined
      }
    },
  }
}

async function deliverSlowly<Item extends Sized>(
  items: readonly Item[],
  deliverOne: (item: Item) => void,
  before: Promise<void> | undefined,
): Promise<void> {
  await before
  let bytes = 0
  for (const item of items) {
    const size = item.message.payload.length
    if (bytes + size > maxAtOnce && bytes > 0) {
      await new Promise((resolve) => setImmediate(resolve))
      bytes = 0
    }
    bytes += size
    deliverOne(item)
  }
}

function isLarge(items: readonly Sized[]): boolean {
  return items.reduce((bytes, { message }) => bytes + message.payload.length, 0) > maxAtOnce
}
