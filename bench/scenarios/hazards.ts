import type { Hazard, Seen } from '../hazards/hazard.ts'
import { hazards as all } from '../hazards/hazards.ts'
import { type Subject, subjects } from '../hazards/subject.ts'
import { type Ground, prepareGround } from '../peers/ground.ts'
import { type Sample, type Scenario, single } from '../scenario.ts'

const byName: Readonly<Record<string, Hazard>> = all
const hubs: readonly string[] = ['hub', 'hub on Redis'] satisfies Subject['name'][]
/** Number of places in one institution. Each place has two livestreams of its own. */
const placesPerInstitution = 3

type Say = (line: string) => void

export const hazards: Scenario = {
  about:
    'What led to the decision not to run on `aedes-persistence-redis` (docs/decisions), looked for with clients over ' +
    'TLS on Aedes with that persistence and `mqemitter-redis`, and on the hub. Shown: it was seen, with how many times of ' +
    'how many possible; the command ends with 1 when a hub shows one. Faults of Redis are not looked for on the embedded ' +
    'store. Messages are events that pass the validation; where the broker alone is looked at, the clients of Aedes ' +
    'publish past it, because the validation waits for the persistence and so hides what the broker promises.',
  options: { runs: [1] },
  parts: Object.fromEntries(Object.entries(all).map(([name, { about }]) => [name, `**${name}**: ${about}`])),
  figures: { shown: 'shown', count: 'seen', of: 'of' },
  compared: [],
  yesNo: ['shown'],
  peers: Object.keys(subjects),
  withoutBefore: true,

  async measure(options, { peers }, say, only) {
    const names = Object.keys(byName).filter((name) => only.length === 0 || only.includes(name))
    const samples: Sample[] = []
    for (let run = 1; run <= single(options, 'runs'); run++) {
      for (const word of Object.keys(subjects) as (keyof typeof subjects)[]) {
        if (peers.length > 0 && !peers.includes(word)) continue
        const found = await lookOn(word, names, say)
        samples.push(...found.map(({ name, system, seen }) => sampleOf(name, system, run, seen)))
      }
    }
    return samples
  },

  outside(samples) {
    return samples
      .filter(({ system, figures }) => hubs.includes(system) && figures.shown === 1)
      .map(({ case: name, system, figures }) => `${system} shows ${name}: ${figures.count} of ${figures.of}`)
  },
}

/** Looks for hazards on one kind of system. Most hazards share a system, in places of their own. */
async function lookOn(word: keyof typeof subjects, names: readonly string[], say: Say) {
  const ground = await prepareGround()
  const shared = createShared(() => subjects[word](ground, undefined))
  const found: { name: string; system: Subject['name']; seen: Seen }[] = []
  try {
    for (const [index, name] of names.entries()) {
      const hazard = byName[name]
      if (!hazard || (hazard.onRedis && word === 'hub')) continue
      const subject = hazard.alone ? await subjects[word](ground, hazard.aedes) : await shared.get()
      if (!subject) break
      try {
        const seen = await hazard.look({ subject, ...placeOf(ground, index) })
        say(`${subject.name}: ${name}: ${seen.shown ? 'shown' : 'absent'}, ${seen.count} of ${seen.of}`)
        found.push({ name, system: subject.name, seen })
      } finally {
        if (hazard.alone) await subject.stop()
      }
    }
    return found
  } finally {
    await shared.stop()
    await ground.remove()
  }
}

/** A system that starts when it is first needed. */
function createShared(start: () => Promise<Subject | undefined>) {
  let subject: Promise<Subject | undefined> | undefined
  return {
    get() {
      subject ??= start()
      return subject
    },
    stop: async () => (await subject)?.stop(),
  }
}

/** Chooses an institution with two livestreams that no other hazard uses. */
function placeOf({ institutions }: Ground, index: number) {
  const { id = '', livestreams = [] } = institutions[index % institutions.length] ?? {}
  const first = (Math.floor(index / institutions.length) % placesPerInstitution) * 2
  const [livestream, other] = livestreams.slice(first, first + 2)
  if (!livestream || !other) throw new Error('the feed has too few livestreams')
  return { institution: id, livestream, other }
}

function sampleOf(name: string, system: string, run: number, { shown, count, of }: Seen): Sample {
  return { case: name, system, run, figures: { shown: Number(shown), count, of } }
}
