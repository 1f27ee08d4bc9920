import t from 'tap'
import { loginTextProblem } from '../../client/login-text.ts'

t.test('a user name or password has as many bytes as MQTT can carry', async (t) => {
  for (const right of ['', 'pub-studio', 'x'.repeat(65_535), 'ü'.repeat(32_767)]) {
    t.equal(loginTextProblem(right), undefined)
  }
  t.match(loginTextProblem('x'.repeat(65_536)), /65,535 bytes/)
  t.match(loginTextProblem('ü'.repeat(32_768)), /65,535 bytes/)
  for (const odd of [7, null, {}]) t.match(loginTextProblem(odd), /must be a text/)
})
