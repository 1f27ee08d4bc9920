/** The words of a text: many of them read more easily than an array. */
export const words = (text: string): string[] => text.trim().split(/\s+/)

/** The texts between bars. */
export const between = (text: string): string[] => text.trim().split(/\s*\|\s*/)
