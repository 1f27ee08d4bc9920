import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'

/** The hub whose pushes arrive. */
export const hub = process.env.HUB

/** `aud` of the pushes. */
export const audience = `https://localhost:${process.env.PORT}/`

/**
 * Answers pushes as service.md §5.6 says: 201, and 204 for a token that `verify` rejects. Prints both.
 *
 * @param verify Gets the token and the request. Resolves when the token is genuine.
 */
export function serve(verify) {
  const { CERT, KEY } = process.env
  const server = createServer({ cert: readFileSync(CERT), key: readFileSync(KEY) }, async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    const event = JSON.parse(Buffer.from(JSON.parse(text).message.data, 'base64'))
    const token = request.headers.authorization.replace('Bearer ', '')
    const { kid } = JSON.parse(Buffer.from(token.split('.')[0], 'base64url'))
    let status = 201
    try {
      await verify(token, request)
      console.log('taken', kid, event.title)
    } catch (error) {
      status = 204
      console.log('refused', kid, event.title, error.message)
    }
    response.writeHead(status).end()
  })
  server.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('listening'))
}
