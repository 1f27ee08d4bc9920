import t from 'tap'
import { hasGtinCheckDigit, hasIsniCheckDigit } from '../../event/check-digit.ts'

t.test('UPC, EAN and GTIN: printed numbers, and each with one digit changed', async (t) => {
  for (const digits of ['036000291452', '4006381333931', '9783161484100', '00012345600012', '96385074']) {
    t.ok(hasGtinCheckDigit(digits), digits)
    t.ok(hasGtinCheckDigit(`00${digits}`), 'zeros in front do not count')
    for (const changed of withOneChanged(digits)) t.notOk(hasGtinCheckDigit(changed), changed)
  }
})

t.test('ISNI: those of people, and each with one digit changed', async (t) => {
  for (const isni of ['0000000121032683', '0000000122816316', '000000012150090X', '0000000000000001']) {
    t.ok(hasIsniCheckDigit(isni), isni)
    for (const changed of withOneChanged(isni)) t.notOk(hasIsniCheckDigit(changed), changed)
  }
})

/** For each digit, the number with the next higher one in its place: what both check digits notice. */
function withOneChanged(digits: string): string[] {
  return [...digits].flatMap((digit, index) =>
    digit === 'X' ? [] : [`${digits.slice(0, index)}${(Number(digit) + 1) % 10}${digits.slice(index + 1)}`],
  )
}
