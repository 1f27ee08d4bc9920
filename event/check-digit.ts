/**
 * Whether the last digit of a UPC, EAN or GTIN fits the others (GS1 General Specifications, 7.9). `digits`: digits
 * only, of any number, because zeros in front do not count.
 */
export function hasGtinCheckDigit(digits: string): boolean {
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const weight = (digits.length - index) % 2 === 0 ? 3 : 1
    sum += Number(digits[index]) * weight
  }
  return sum % 10 === 0
}

/**
 * Whether the last character of an ISNI fits the others (ISO 27729; ISO/IEC 7064, MOD 11-2). `isni`: fifteen digits,
 * then a digit or `X`.
 */
export function hasIsniCheckDigit(isni: string): boolean {
  let sum = 0
  for (let index = 0; index < 15; index++) sum = (sum + Number(isni[index])) * 2
  const check = (12 - (sum % 11)) % 11
  return isni[15] === (check === 10 ? 'X' : String(check))
}
