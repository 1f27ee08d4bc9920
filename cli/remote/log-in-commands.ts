import { type Input, type LocalCommand, usage } from '../command.ts'
import { checkUrl, type LoggedIn, logIn, logOut, readCa } from './log-in.ts'

const login: LocalCommand<LoggedIn> = {
  words: 'login',
  summary:
    'log in to a hub over HTTPS; e-mail address and password are asked for, or read from lines of the standard input',
  about: '[From elsewhere](operators.md#from-elsewhere).',
  options: [{ flags: '--email <email>', summary: 'e-mail address of a user with the permission operate' }],
  run: async (input: Input, { url, caPath }) =>
    logIn(urlOf(url), {
      email: input.optional('email'),
      ca: caPath === undefined ? undefined : await readCa(caPath),
    }),
  print: (result, printer) => printer.sentence('Logged in as {email} at {url}.', result),
}

const logout: LocalCommand<{ url: string; loggedOut: boolean }> = {
  words: 'logout',
  summary: 'end the log-in to a hub, and forget it',
  run: async (_input, { url, caPath }) =>
    logOut(urlOf(url), caPath === undefined ? undefined : await readCa(caPath)),
  print: (result, printer) =>
    printer.sentence(result.loggedOut ? 'Logged out at {url}.' : 'There was no log-in at {url}.', result),
}

/** The commands that log in to a hub over HTTPS, and out. */
export const logInCommands: readonly LocalCommand[] = [login, logout]

function urlOf(url: string | undefined): string {
  if (url === undefined)
    throw usage('--url or HUBCTL_URL must name the hub, such as https://hub.example:8443')
  return checkUrl(url)
}
