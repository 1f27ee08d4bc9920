/** The mail server, as the configuration has it. */
export interface MailServer {
  host: string
  port: number
  secure: boolean
  from: string
  user?: string | undefined
  password?: string | undefined
}

const timeoutMs = 20_000

/** Sends a mail; rejects when the server does not take it. */
export function createMailTransport(server: MailServer) {
  const transport = openTransport(server)

  return async (mail: { to: string; subject: string; lines: readonly string[] }): Promise<void> => {
    await (await transport).sendMail({
      from: server.from,
      // As an object: a line break or a comma in it cannot make several addresses.
      to: { name: '', address: mail.to },
      subject: mail.subject,
      text: [...mail.lines, ''].join('\n'),
    })
  }
}

/** Loads the client: most nodes have no mail server, and do without. */
async function openTransport(server: MailServer) {
  const { createTransport } = await import('nodemailer')
  const { user, password } = server
  return createTransport({
    host: server.host,
    port: server.port,
    secure: server.secure,
    // A password never goes over an open line.
    requireTLS: user !== undefined && !server.secure,
    ...(user !== undefined && password !== undefined && { auth: { user, pass: password } }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}
