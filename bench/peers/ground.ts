import { readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { type Livestream, parseFeed } from '../../validator/feed/feed.ts'
import { makeFolder } from '../ending.ts'

export type Ground = Awaited<ReturnType<typeof prepareGround>>

/** Makes what all systems of a run share: directory, certificate, feed. `hosts`: further hosts of the certificate. */
export async function prepareGround(livestreams = 60, hosts: readonly string[] = [], institutions = 10) {
  const directory = makeFolder()
  const certificate = await ensureDevelopmentCertificates(join(directory, 'certs'), hosts)
  const feedPath = join(directory, 'feed.json')
  await writeFile(feedPath, JSON.stringify({ items: inventLivestreams(livestreams, institutions) }))
  return {
    directory,
    certificate,
    ca: readFileSync(certificate.ca, 'utf8'),
    feedPath,
    institutions: institutionsOf(feedPath),
    remove: () => rm(directory, { recursive: true, force: true, maxRetries: 3 }),
  }
}

export type Stop = () => Promise<unknown>

/** Calls `work` on a ground, and then what it has put into `stops`, the last first, also after an error. */
export async function onGround<Result>(
  of: Parameters<typeof prepareGround>,
  work: (ground: Ground, stops: Stop[]) => Promise<Result>,
): Promise<Result> {
  const ground = await prepareGround(...of)
  const stops: Stop[] = [ground.remove]
  try {
    return await work(ground, stops)
  } finally {
    // If one part fails to stop, the others still stop. The end of the bench kills the rest (`bench/ending.ts`).
    for (const stop of stops.reverse()) await stop().catch(() => undefined)
  }
}

/** Reads the feed of a ground, in any process of the bench. */
export function readFeed(path: string) {
  const parsed = parseFeed(readFileSync(path, 'utf8'))
  if ('problem' in parsed) throw new Error(parsed.problem)
  return parsed
}

function institutionsOf(path: string): { id: string; livestreams: Livestream[] }[] {
  const { feed } = readFeed(path)
  const institutions = new Map<string, Livestream[]>()
  for (const { id } of JSON.parse(readFileSync(path, 'utf8')).items) {
    const livestream = feed.byId.get(id)
    if (!livestream) continue
    const list = institutions.get(livestream.institution.id)
    if (list) list.push(livestream)
    else institutions.set(livestream.institution.id, [livestream])
  }
  return [...institutions].map(([id, livestreams]) => ({ id, livestreams }))
}

/** Makes the items of a feed. */
function inventLivestreams(count: number, institutions: number) {
  const hex = (number: number) => number.toString(16).padStart(16, '0')
  return Array.from({ length: count }, (_, index) => {
    const number = index % institutions
    return {
      id: `urn:org:permanent-livestream:${hex(index)}`,
      type: 'PermanentLivestream',
      externalId: `crid://bench.example/${number}/${index}`,
      title: `Livestream ${index}`,
      publisher: {
        id: `urn:org:publisher:${hex(number)}`,
        externalId: String(number),
        title: `Publisher ${number}`,
        institution: {
          id: `urn:org:institution:${hex(number)}`,
          title: `Institution ${number}`,
          acronym: `I${number}`,
        },
      },
    }
  })
}
