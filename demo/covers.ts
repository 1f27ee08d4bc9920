import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'

/** Serves invented covers over https, with the development certificate of the node, which the browser accepts already. */
export async function startCovers({ caPath }: { caPath: string }) {
  const [cert, key] = await Promise.all(
    ['server.pem', 'server-key.pem'].map((name) => readFile(join(dirname(caPath), name))),
  )
  const server = createServer({ cert, key }, ({ url = '' }, response) => {
    response.writeHead(200, { 'content-type': 'image/svg+xml', 'cache-control': 'max-age=3600' })
    response.end(draw(url))
  })
  await once(server.listen(0, 'localhost'), 'listening')
  const { port } = server.address() as AddressInfo

  return {
    /** The URL of the cover of a title. The same title always gets the same cover. */
    urlOf: (title: string): string => `https://localhost:${port}/${encodeURIComponent(title)}.svg`,
    close(): void {
      server.close()
      server.closeAllConnections()
    },
  }
}

function draw(path: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = createHash('sha256').update(path).digest()
  const sky = `hsl(${a * 1.4} 45% ${35 + (b % 30)}%)`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100"><path fill="${sky}" d="M0 0h100v100H0z"/><circle cx="${20 + (c % 60)}" cy="${25 + (d % 35)}" r="${10 + (b % 22)}" fill="hsl(${b * 1.4} 70% 70%)"/><path d="M0 ${60 + (c % 25)}Q50 ${40 + (a % 35)} 100 ${65 + (d % 20)}V100H0z" fill="hsl(${a * 1.4 + 180} 35% 22%)"/></svg>`
}
