/**
 * A text in the characters that a carrier has. What it has no character for becomes the nearest Latin one, is left out,
 * or becomes `?`: `characterClasses` lists it. `has`: whether the carrier has a character.
 */
export function transliterate(text: string, has: (character: string) => boolean): string {
  const characters = [...text.normalize('NFC')]
  const shown = characters.map((character, nth) =>
    nearest(character, has, isUpper(characters[nth + 1]) || isUpper(characters[nth - 1])),
  )
  return shown
    .join('')
    .replaceAll(/\ue000+/g, '?')
    .replace(/ {2,}/g, ' ')
    .trim()
}

/** Stands for a letter of another script until a row of them becomes one `?`. No cleaned text has it. */
const unknown = '\ue000'

/** What becomes of characters that a carrier does not have, a class each: the table in docs/outputs.md, and its test. */
export const characterClasses = [
  { of: 'letters with marks', from: 'ế ṩ ḿ', to: 'ê s m', how: 'without the marks that are missing' },
  { of: 'other Latin letters', from: 'ə ƒ ſ', to: 'e f s', how: 'the nearest letter' },
  { of: 'Cyrillic', from: 'Жизнь Щука Київ', to: 'Zhizn Shchuka Kiyiv', how: 'Latin letters' },
  { of: 'Greek', from: 'Θάλασσα Ψυχή', to: 'Thalassa Psychi', how: 'Latin letters' },
  { of: 'other scripts', from: '東京 שלום', to: '? ?', how: 'one `?` for each row of letters' },
  { of: 'quotation marks', from: '„Ja“ l’amour ‚so‘', to: `"Ja" l'amour 'so'`, how: 'straight ones' },
  { of: 'dashes', from: 'a – b — c ‐ d', to: 'a - b - c - d', how: '`-`' },
  { of: 'dots', from: 'und so… ·', to: 'und so... .', how: '`...`, `.`' },
  { of: 'ligatures, full width', from: 'ﬁn ＡＢＣ', to: 'fin ABC', how: 'the letters one by one' },
  { of: 'signs', from: '№ 5 ™ ®', to: 'No 5 TM (R)', how: 'letters' },
  { of: 'emoji, pictures', from: 'Sun ☀️ 🎵 👩‍👩‍👧 set', to: 'Sun set', how: 'left out' },
  { of: 'spaces of other widths', from: 'a\u00a0b\u2009c', to: 'a b c', how: 'a space' },
] as const

function nearest(character: string, has: (character: string) => boolean, isAmongUpper: boolean): string {
  if (has(character)) return character
  const lower = character.toLowerCase()
  const listed = letters[lower]
  if (listed !== undefined) {
    const shown = lower === character ? listed : isAmongUpper ? listed.toUpperCase() : capital(listed)
    return [...shown].filter(has).join('')
  }
  const marked = [...character.normalize('NFD')]
  if (marked.length > 1) return nearestMarked(marked, has, isAmongUpper)
  const parts = [...character.normalize('NFKD')]
  if (parts.join('') !== character) return parts.map((part) => nearest(part, has, isAmongUpper)).join('')
  if (/\p{Pd}/u.test(character)) return '-'
  if (/\p{Z}/u.test(character)) return ' '
  return /[\p{L}\p{N}]/u.test(character) ? unknown : ''
}

/** `ế` becomes `ê` where the carrier has that, else `e`. */
function nearestMarked(
  [base = '', ...marks]: string[],
  has: (character: string) => boolean,
  isAmongUpper: boolean,
): string {
  const some = marks.map((mark) => (base + mark).normalize('NFC')).find((whole) => has(whole))
  return some ?? nearest(base, has, isAmongUpper)
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function isUpper(character: string | undefined): boolean {
  return character !== undefined && /\p{Lu}/u.test(character)
}

/** `a=b c=d` as a table. */
function table(pairs: string): [string, string][] {
  return pairs
    .trim()
    .split(/\s+/)
    .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)])
}

/** Small letters and signs. Capital letters follow. */
const letters: Readonly<Record<string, string>> = Object.assign(
  Object.create(null),
  Object.fromEntries([
    ...table(`а=a б=b в=v г=g д=d е=e ё=yo ж=zh з=z и=i й=y к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=kh ц=ts
      ч=ch ш=sh щ=shch ъ= ы=y ь= э=e ю=yu я=ya є=ye і=i ї=yi ґ=g ў=u ђ=dj ј=j љ=lj њ=nj ћ=c џ=dz ѓ=gj ќ=kj ѕ=dz`),
    ...table(
      `α=a β=v γ=g δ=d ε=e ζ=z η=i θ=th ι=i κ=k λ=l μ=m ν=n ξ=x ο=o π=p ρ=r σ=s ς=s τ=t υ=y φ=f χ=ch ψ=ps ω=o`,
    ),
    ...table(`ł=l đ=d ø=o æ=ae œ=oe ß=ss þ=th ð=d ħ=h ı=i ŋ=n ŧ=t ĸ=k ə=e ƒ=f ſ=s ɛ=e ɔ=o`),
    ...table(`’=' ‘=' ‚=' ‛=' ′=' \`=' ´=' ʼ=' ‹=' ›=' “=" ”=" „=" ‟=" ″=" «=" »="`),
    ...table(
      `…=... •=- ·=. ×=x ÷=/ ⁄=/ ∕=/ \\=/ |=/ ¦=/ {=( }=) ~=- −=- ®=(R) ©=(C) ♯=# ♭=b ¥=Y ¢=c €=EUR £=GBP`,
    ),
    ...table(`µ=u`),
  ]),
)
