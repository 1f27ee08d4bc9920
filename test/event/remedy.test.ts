import t from 'tap'
import { errorTable, schemaErrorTable } from '../../event/error.ts'
import { remedyOf } from '../../event/remedy.ts'
import { warningTable } from '../../event/warnings.ts'

t.test('every error and every warning has a remedy in plain text', async (t) => {
  const codes = [
    ...Object.keys(errorTable),
    ...Object.keys(schemaErrorTable).map((keyword) => `${keyword}.openapi.validation`),
    ...Object.keys(warningTable),
  ]
  for (const code of codes) {
    const remedy = remedyOf(code) ?? ''
    t.ok(remedy.length > 10, code)
    t.notMatch(remedy, /\]\(|`/, code)
  }
  t.equal(remedyOf('payload.size')?.startsWith('stay within 409600 bytes'), true)
  t.equal(remedyOf('toString'), null)
})
