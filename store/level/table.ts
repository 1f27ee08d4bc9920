import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { families } from '../keys.ts'

/*
 * Checks the checksums in LevelDB's tables (its data files). Otherwise LevelDB would return flipped bits as values: its
 * Node.js binding offers no check. Formats: LevelDB's doc/table_format.md, and raw Snappy for compressed blocks.
 */

/** Sorted prefixes. Opening a store does not check the entries below them. */
export const uncheckedPrefixes: readonly string[] = [...families.values()]
  .filter(({ isLarge }) => isLarge)
  .map(({ prefix }) => prefix)
  .sort()

/** Rejects with an error like LevelDB's if a block is damaged. Skips blocks whose keys are all below `uncheckedPrefixes`. */
export async function checkTables(directory: string): Promise<void> {
  for (const path of await tablesOf(directory)) {
    if ((await damagedBlocks(path, uncheckedPrefixes)).length > 0) {
      throw new Error(`Corruption: block checksum mismatch in ${path}`)
    }
  }
}

/**
 * Writes an invalid type into each damaged block, so that LevelDB's repair leaves the block out. The repair itself does
 * not check the checksum.
 */
export async function markDamagedBlocks(directory: string): Promise<void> {
  for (const path of await tablesOf(directory)) {
    const places = await damagedBlocks(path)
    if (places.length === 0) continue
    const file = await open(path, 'r+')
    try {
      for (const place of places) await file.write(Buffer.from([noSuchType]), 0, 1, place)
    } finally {
      await file.close()
    }
  }
}

async function tablesOf(directory: string): Promise<string[]> {
  const names: string[] = await readdir(directory).catch(() => [])
  return names.filter((name) => /\.(ldb|sst)$/.test(name)).map((name) => join(directory, name))
}

const noSuchType = 0xff
const snappyType = 1
const footerBytes = 48
/** Bytes behind a block: its type (1) and its checksum (4). */
const trailerBytes = 5
const magic = Buffer.from('57fb808b247547db', 'hex')

interface Handle {
  offset: number
  size: number
}

/**
 * Returns the offset of the type byte of each damaged block. Returns none for an incomplete table, which LevelDB itself
 * reports. Does not read a block whose keys all begin with the same prefix of `leftOut`.
 */
async function damagedBlocks(path: string, leftOut: readonly string[] = []): Promise<number[]> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const table = Buffer.allocUnsafe(size)
    const load = async (from: number, to = size) => {
      for (let at = from; at < to; ) {
        const { bytesRead } = await file.read(table, at, to - at, at)
        if (bytesRead === 0) throw new Error(`${path} became shorter`)
        at += bytesRead
      }
    }
    if (size < footerBytes) return []
    await load(size - footerBytes)
    if (!table.subarray(-magic.length).equals(magic)) return []
    const footer = reader(table.subarray(-footerBytes))
    const metaindex = handleOf(footer)
    const index = handleOf(footer)
    await load(index.offset)
    if (!isWhole(table, index)) return placesIn(table, [index])
    const wanted = [metaindex]
    let from = 0
    for (const { handle, before, last } of indexed(table, index)) {
      if (leftOut.some((prefix) => before.startsWith(prefix) && last.startsWith(prefix))) {
        await load(from, handle.offset)
        from = handle.offset + handle.size + trailerBytes
      } else {
        wanted.push(handle)
      }
    }
    await load(from)
    return placesIn(
      table,
      wanted.filter((handle) => !isWhole(table, handle)),
    )
  } finally {
    await file.close()
  }
}

function placesIn(table: Buffer, handles: readonly Handle[]): number[] {
  return handles.map(({ offset, size }) => Math.min(offset + size, table.length - 1))
}

function isWhole(table: Buffer, { offset, size }: Handle): boolean {
  if (offset + size + trailerBytes > table.length) return false
  const masked = table.readUInt32LE(offset + size + 1)
  const rotated = (masked - 0xa282ead8) >>> 0
  return crc32c(table.subarray(offset, offset + size + 1)) === ((rotated >>> 17) | (rotated << 15)) >>> 0
}

interface Block {
  handle: Handle
  /** All keys of the block are after this key. '' for the first block. */
  before: string
  /** No key of the block is after this key. */
  last: string
}

/** The data blocks that an index lists. */
function indexed(table: Buffer, { offset, size }: Handle): Block[] {
  const stored = table.subarray(offset, offset + size)
  const block = table[offset + size] === snappyType ? uncompressed(stored) : stored
  const restarts = block.readUInt32LE(block.length - 4)
  const entries = reader(block.subarray(0, block.length - 4 * (restarts + 1)))
  const blocks: Block[] = []
  let before = ''
  while (!entries.isAtEnd()) {
    // Skips one number: how many bytes the key shares with the previous key. In an index, this number is always 0.
    entries.number()
    const keyBytes = entries.number()
    entries.number()
    const last = entries.take(keyBytes).toString()
    blocks.push({ handle: handleOf(entries), before, last })
    before = last
  }
  return blocks
}

function handleOf(from: ReturnType<typeof reader>): Handle {
  return { offset: from.number(), size: from.number() }
}

function reader(bytes: Buffer) {
  let at = 0
  return {
    isAtEnd: () => at >= bytes.length,
    /** A varint: seven bits in each byte, the lowest first. */
    number(): number {
      let value = 0
      for (let scale = 1; ; scale *= 128) {
        const byte = bytes[at++] ?? 0
        value += (byte & 0x7f) * scale
        if (byte < 0x80) return value
      }
    },
    byte: () => bytes[at++] ?? 0,
    take(count: number): Buffer {
      at += count
      return bytes.subarray(at - count, at)
    },
  }
}

/** Decompresses raw Snappy. Does not detect wrong data: check the checksum before. */
function uncompressed(compressed: Buffer): Buffer {
  const from = reader(compressed)
  const output = Buffer.alloc(from.number())
  let length = 0
  while (!from.isAtEnd()) {
    const tag = from.byte()
    const kind = tag & 3
    if (kind === 0) {
      const short = tag >> 2
      const count = 1 + (short < 60 ? short : littleEndian(from.take(short - 59)))
      length += from.take(count).copy(output, length)
      continue
    }
    const count = kind === 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1
    const distance =
      kind === 1 ? ((tag >> 5) << 8) + from.byte() : littleEndian(from.take(kind === 2 ? 2 : 4))
    // Copies byte by byte, because source and target may overlap.
    for (let index = 0; index < count; index++, length++) output[length] = output[length - distance] ?? 0
  }
  return output
}

function littleEndian(bytes: Buffer): number {
  return bytes.readUIntLE(0, bytes.length)
}

const polynomial = 0x82f63b78
const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1
  return value
})

/** CRC-32C (RFC 3720 B.4). */
function crc32c(bytes: Buffer): number {
  let crc = 0xffffffff
  for (let index = 0; index < bytes.length; index++) {
    crc = (crcTable[(crc ^ (bytes[index] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8)
  }
  return (crc ^ 0xffffffff) >>> 0
}
