/** The form of a text that is compared in searches, so that `kuste` and `KÜSTE` both find `Küste`. */
export function fold(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/ß/g, 'ss')
    .trim()
    .replace(/\s+/g, ' ')
}
