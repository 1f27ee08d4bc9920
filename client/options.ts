import { ClientError } from './errors.ts'
import { loginTextProblem } from './login-text.ts'
import { readUrl } from './url.ts'

/** Throws `ClientError` with the name of the option and what is expected. */
export function wrongOption(name: string, expected: string): never {
  throw new ClientError('option.invalid', `${name} ${expected}`)
}

/** Throws `ClientError` where MQTT could not carry a user name or password. */
export function checkLoginText(name: string, value: unknown): void {
  const problem = loginTextProblem(value)
  if (problem) wrongOption(name, problem)
}

/** Reads the option `url`. `schemes`: how it may begin. Throws `ClientError`. */
export function checkUrl(url: string, schemes: readonly string[]): URL {
  const parsed = readUrl(url)
  if (!parsed || !schemes.includes(`${parsed.protocol}//`)) {
    wrongOption('url', `must begin with ${schemes.slice(0, -1).join(', ')} or ${schemes.at(-1)}`)
  }
  if (parsed.username || parsed.password) wrongOption('url', 'must not hold user or password')
  return parsed
}

/** Throws the `ClientError` of an option that only Node.js has. */
export function unsupported(what: string): never {
  throw new ClientError('browser.unsupported', `a browser has no files: leave out ${what}`)
}
