import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { freePort } from '../../test/free-port.ts'
import { startChild, type Usage } from '../child.ts'
import { spawnUntilEnd } from '../ending.ts'
import type { Ground } from './ground.ts'
import { anyPublishers, type Peer } from './peer.ts'
import type { commands as validatingClient } from './validating-client.ts'

/** Starts Mosquitto without log-in, access control and persistence. A client of Mosquitto validates the events. */
export async function startMosquitto(ground: Ground): Promise<Peer | undefined> {
  const [port, plainPort] = [await freePort(), await freePort()]
  const { cert, key } = ground.certificate
  const config = join(ground.directory, `mosquitto-${port}.conf`)
  const lines = [
    'allow_anonymous true',
    'persistence false',
    'set_tcp_nodelay true',
    'log_type error',
    'user root',
    // 0 means no limit: the broker must drop nothing.
    'max_inflight_messages 0',
    'max_queued_messages 0',
    `listener ${port} 127.0.0.1`,
    `certfile ${cert}`,
    `keyfile ${key}`,
    `listener ${plainPort} 127.0.0.1`,
  ]
  await writeFile(config, `${lines.join('\n')}\n`)
  const server = await startServer('mosquitto', ['-c', config], plainPort)
  if (!server) return undefined
  return besideValidator('Mosquitto + validator', ground, port, server, { port: plainPort })
}

/** Starts NATS with its MQTT listener, which needs JetStream. */
export async function startNats(ground: Ground): Promise<Peer | undefined> {
  const [port, natsPort] = [await freePort(), await freePort()]
  const { cert, key } = ground.certificate
  const config = join(ground.directory, `nats-${port}.conf`)
  const lines = [
    'server_name: bench',
    `listen: "127.0.0.1:${natsPort}"`,
    `jetstream { store_dir: "${join(ground.directory, 'nats')}" }`,
    `mqtt { listen: "127.0.0.1:${port}", tls { cert_file: "${cert}", key_file: "${key}" } }`,
  ]
  await writeFile(config, `${lines.join('\n')}\n`)
  const server = await startServer('nats-server', ['-c', config], natsPort)
  if (!server) return undefined
  return besideValidator('NATS + validator', ground, port, server, { port, ca: ground.ca })
}

async function besideValidator(
  name: Peer['name'],
  ground: Ground,
  port: number,
  server: Pick<Peer, 'usage' | 'stop'> & { pid: number },
  inside: { port: number; ca?: string },
): Promise<Peer> {
  const validator = await startChild<typeof validatingClient>('peers/validating-client.ts')
  await validator.ask('start', { ...inside, feedPath: ground.feedPath })
  return {
    name,
    address: { port, ca: ground.ca },
    subscriber: undefined,
    publishers: anyPublishers(ground),
    async usage(of) {
      const [broker, beside] = await Promise.all([server.usage(), validator.usage(of)])
      return { cpuMs: broker.cpuMs + beside.cpuMs, bytes: broker.bytes + beside.bytes }
    },
    pids: [server.pid, validator.pid],
    async stop() {
      await validator.stop()
      await server.stop()
    },
  }
}

/** Starts a server, and waits until `port` accepts connections. Undefined: not installed. */
export async function startServer(command: string, args: string[], port: number) {
  const path = `${process.env.PATH}:/usr/sbin:/usr/local/sbin`
  if (!path.split(':').some((folder) => existsSync(join(folder, command)))) {
    process.stderr.write(`  left out: ${command} is not installed\n`)
    return undefined
  }
  const child = spawnUntilEnd(command, args, { stdio: 'ignore', env: { PATH: path } })
  const exited = once(child, 'exit')
  for (let tries = 0; !(await accepts(port)); tries++) {
    if (tries > 100 || child.exitCode !== null) throw new Error(`${command} does not start`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const pid = child.pid ?? 0
  return {
    pid,
    usage: () => usageOfProcess(pid),
    async stop(): Promise<void> {
      child.kill('SIGTERM')
      await exited
    },
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** Usage of a process that cannot be asked. `schedstat` has nanoseconds of CPU time; `ps` would give hundredths of a second. */
export async function usageOfProcess(pid: number): Promise<Usage> {
  const times = await ofThreads(pid, 'schedstat')
  const cpuNs = times.reduce((sum, line) => sum + Number(line.split(' ')[0]), 0)
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return { cpuMs: cpuNs / 1e6, bytes: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024 }
}

/** This file of each thread of a process. A thread that ends meanwhile has none. */
export async function ofThreads(pid: number, file: string): Promise<string[]> {
  const threads = await readdir(`/proc/${pid}/task`)
  const read = threads.map((thread) =>
    readFile(`/proc/${pid}/task/${thread}/${file}`, 'utf8').catch(() => []),
  )
  return (await Promise.all(read)).flat()
}
