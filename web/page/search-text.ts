/** A text as searches compare it: `kuste` and `KÜSTE` find `Küste`. */
export function searchText(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/ß/g, 'ss')
    .trim()
    .replace(/\s+/g, ' ')
}
