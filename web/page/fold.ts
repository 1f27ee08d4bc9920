/** A text as it is searched: `Küste` is found by `kuste` and by `KÜSTE`. */
export function fold(text: string): string {
  return text
    .slice(0, longest)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/ß/g, 'ss')
    .trim()
    .replace(/\s+/g, ' ')
}

/** Longest text that is searched, characters. */
const longest = 500
