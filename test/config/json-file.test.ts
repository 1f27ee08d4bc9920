import t from 'tap'
import { readJson } from '../../config/json-file.ts'

const read = (text: string) => readJson(Buffer.from(text))

t.test('a mistake is named by line and column, without a word of the file', async (t) => {
  const wrong: [text: string, problem: string][] = [
    ['', 'line 1, column 1: the text ends before its JSON does'],
    ['{"smtp":{"password":"geheim"x}}', 'line 1, column 29: this is not JSON'],
    ['{\n  "password": geheim\n}', 'line 2, column 15: this is not JSON'],
    ['"geheim"', 'expected an object'],
    ['[]', 'expected an object'],
    ['\uFEFF{}', 'it starts with a byte order mark, expected JSON'],
  ]
  for (const [text, problem] of wrong) t.strictSame(read(text), { problems: [problem] }, text)
  t.match(readJson(Buffer.from([0x7b, 0xff])), { problems: [/not UTF-8/] })
})

t.test('JSON that could be understood differently is refused by its place, without its values', async (t) => {
  t.match(read('{"a":{"b":1,"b":2}}'), { problems: [/^at \.a\.b: .*occurs twice$/] })
  const { problems = [] } = { problems: undefined, ...read('{"a":123456789012345678901}') }
  t.match(problems, [/^at \.a: .*out of range/])
  t.notMatch(problems.join(), /1234/)
  t.match(read('{"smtp":{"from":"x\\udf39"}}'), { problems: [/^at \.smtp\.from: .*half a character/] })
})
