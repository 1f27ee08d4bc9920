import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { installedPackage } from '../../test/installed-package.ts'
import { type Build, startNode } from '../node.ts'
import { onGround } from '../peers/ground.ts'
import { nodeEnv } from '../peers/hub.ts'
import { usageOfProcess } from '../peers/installed.ts'
import { type Sample, type Scenario, single } from '../scenario.ts'
import { alternately } from '../stage.ts'

export const start: Scenario = {
  about:
    'From the start of a process to what it is for: the packed and installed hub until `hub ready`, on the store of its ' +
    'start before; `hubctl --version` until it ends, beside `node -e 0`.',
  options: { runs: [6] },
  figures: { seconds: 'after, s', cpu: 'CPU, s' },
  compared: ['seconds', 'cpu'],
  peers: ['hub'],

  async measure(options, { before }, say) {
    return onGround([], async (ground) => {
      say('packs and installs the hub')
      const installed = await installedPackage()
      const builds: { name: string; build: Build }[] = [
        { name: 'hub', build: { server: join(installed, 'dist/server.js'), project: installed } },
        ...(before ? [{ name: 'before', build: before }] : []),
      ]
      const hubs = builds.map(({ name, build }) => {
        const env = { ...nodeEnv(ground), HUB_DATA_DIR: join(ground.directory, name) }
        return { name, play: () => startHub(build, env) }
      })
      // The first start makes the store.
      for (const { play } of hubs) await play()
      const commands = builds.map(({ name, build }) => {
        return { name, play: () => runCommand(hubctlOf(build), '--version') }
      })
      const cases = {
        'hub ready, second start': hubs,
        'hubctl --version': [...commands, { name: 'node -e 0', play: () => runCommand('-e', '0') }],
      }
      const samples: Sample[] = []
      for (const [what, plays] of Object.entries(cases)) {
        const found = await alternately(plays, single(options, 'runs'), async ({ name, play }, run) => {
          const figures = await play()
          say(
            `${name}: run ${run}, ${what}: ${figures.seconds.toFixed(2)} s, CPU ${figures.cpu.toFixed(2)} s`,
          )
          return { case: what, system: name, run, figures }
        })
        samples.push(...found)
      }
      return samples
    })
  },
}

/** The path of the program `hubctl`. */
function hubctlOf({ project }: Build): string {
  const { bin } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
  return join(project, bin.hubctl)
}

async function startHub(build: Build, env: Record<string, string>) {
  const node = await startNode(env, { alone: true, build })
  const { cpuMs } = await usageOfProcess(node.pid)
  await node.stop()
  return { seconds: node.readyMs / 1000, cpu: cpuMs / 1000 }
}

/** Runs Node.js with these words. The shell knows the CPU time of what it has run. */
async function runCommand(...words: string[]) {
  const timed = 'TIMEFORMAT="%R %U %S"; time "$@" > /dev/null'
  const { stderr } = await promisify(execFile)('bash', ['-c', timed, 'bash', process.execPath, ...words])
  const [seconds = NaN, user = NaN, system = NaN] = stderr.trim().split(' ').map(Number)
  return { seconds, cpu: user + system }
}
