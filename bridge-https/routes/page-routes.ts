import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Answer, refuse } from '../answer.ts'
import { keptByAll } from '../caching.ts'
import { answerKept, type Kept, keepText, notModified } from '../kept.ts'
import { websocketPath } from '../request.ts'
import type { Call, Route } from './route.ts'

/** The files for browsers: documents, `licenses.txt`, the script for pages of others, files with a hash in their names. */
interface WebFiles {
  directory(): Promise<string>
}

interface PageParts {
  webFiles: WebFiles
  publicUrl: () => string
}

/** The pages for people, and the files they consist of. */
export function pageRoutes(parts: PageParts): Route[] {
  const base = { method: 'GET', tag: 'Pages' } as const
  return [
    {
      ...base,
      path: '/livestreams/{livestreamId}',
      id: 'livestreamPage',
      summary: 'Page of one livestream, for browsers',
      params: { livestreamId: { description: 'Id of the livestream' } },
      ...htmlOf('on-air', parts),
    },
    ...consolePaths.map(
      ({ path, id, params }): Route => ({
        ...base,
        path,
        id,
        params,
        summary: 'The operators’ console, for browsers',
        ...htmlOf('console', parts),
      }),
    ),
    {
      ...base,
      path: '/web/{file}',
      id: 'webFile',
      summary: 'A script, style sheet or picture of a page',
      params: { file: { description: 'Its name' } },
      answers: {
        200: { description: 'The file', mediaType: 'text' },
        404: 'There is no such file',
      },
      async handle({ params: { file: name = '' } }) {
        const isHashed = /^[\w-]+-[A-Z0-9]{8}\.(js|css|svg)$/.test(name)
        if (!isHashed && name !== 'licenses.txt') return refuse(404)
        return {
          status: 200,
          body: undefined,
          // Also the headers of a 404: a node of another release does not have this file.
          headers: { 'cache-control': 'no-cache', vary: 'accept-encoding' },
          file: { directory: await parts.webFiles.directory(), name, isForever: isHashed },
        }
      },
    },
    {
      ...base,
      path: '/embed/v1.js',
      id: 'embed',
      summary: 'The element `<now-playing>`, for pages of others',
      crossOrigin: true,
      answers: {
        200: { description: 'The script', mediaType: 'application/javascript' },
        304: { ...notModified, mediaType: 'application/javascript' },
      },
      handle: createEmbed(parts),
    },
    {
      ...base,
      path: websocketPath,
      id: 'websocket',
      summary: 'MQTT over WebSocket (wss), for requests with an upgrade',
      answers: { 426: 'For whoever asks without an upgrade' },
      // RFC 9110 §15.5.22. `close`: a request that offered another protocol ends its connection.
      handle: () => ({ ...refuse(426), headers: { upgrade: 'websocket', connection: 'upgrade, close' } }),
    },
  ]
}

/** The script for pages of others. Its name never changes, so caches keep it for a short time. */
function createEmbed({ webFiles }: PageParts) {
  const name = 'embed-v1.js'
  let kept: Kept | undefined
  return async ({ header }: Call): Promise<Answer> => {
    const directory = await webFiles.directory()
    kept ??= keepText(await readFile(join(directory, name), 'utf8'))
    const { status, headers } = answerKept(kept, header)
    return {
      status,
      body: undefined,
      headers: {
        ...headers,
        // Weak: the same for each encoding (RFC 9110 §8.8.3.3).
        etag: `W/${kept.tag}`,
        ...keptByAll(300),
        // That of the file, also of a 304: browsers take its headers over.
        'content-type': 'application/javascript; charset=utf-8',
        // Any page may load it, also with `crossorigin` or below Cross-Origin-Embedder-Policy.
        'cross-origin-resource-policy': 'cross-origin',
        vary: 'accept-encoding',
      },
      ...(status === 200 && { file: { directory, name } }),
    }
  }
}

/** All these paths get the same document. Its script shows the view. */
const consolePaths = [
  { path: '/console', id: 'console', params: {} },
  { path: '/console/{view}', id: 'consoleView', params: { view: { description: 'A view' } } },
  {
    path: '/console/{view}/{name}',
    id: 'consolePage',
    params: { view: { description: 'A view' }, name: { description: 'What of it' } },
  },
]

/** Headers that keep caches from mixing up a page and the 404 for other clients. */
const pageCacheHeaders = { 'cache-control': 'no-cache', vary: 'accept, accept-encoding' }

function htmlOf(name: string, parts: PageParts) {
  const noPage = { ...refuse(404), headers: pageCacheHeaders }
  return {
    answers: {
      200: { description: 'Page', mediaType: 'text/html' },
      404: 'For whoever asks for anything but text/html',
    },
    handle: async ({ header }: Call) => (wantsPage(header) ? pageAnswer(name, parts) : noPage),
  }
}

/** Whether the header Accept names `text/html` and not `application/json`, as browsers send it. */
export function wantsPage(header: Call['header']): boolean {
  const types = (header('accept') ?? '').toLowerCase().split(',')
  const named = types.map((type) => type.replace(/\s/g, '')).filter((type) => !/;q=0(\.0*)?$/.test(type))
  const isNamed = (name: string) => named.some((type) => type.split(';')[0] === name)
  return isNamed('text/html') && !isNamed('application/json')
}

/** The document of a page. The policy permits files of the hub, and cover images from any https host. */
export async function pageAnswer(name: string, { webFiles, publicUrl }: PageParts): Promise<Answer> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' https:",
    // The standard lets 'self' cover WebSockets too. In older Safari, 'self' covers only https.
    `connect-src 'self' wss://${new URL(publicUrl()).host}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    status: 200,
    body: undefined,
    headers: {
      'content-security-policy': policy.join('; '),
      ...pageCacheHeaders,
    },
    file: { directory: await webFiles.directory(), name: `${name}.html` },
  }
}
