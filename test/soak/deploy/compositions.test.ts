import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { loadConfig } from '../../../config/config.ts'
import { openApi } from '../../bridge-https/api.ts'
import { projectFile, root } from '../../root.ts'
import { startTestHub } from '../../start-hub.ts'

/*
 * deploy/compose.yaml and deploy/kubernetes.yaml name settings, ports, paths and a user. The hub and its image must have
 * them. `docker-compose config` and the types of Kubernetes have judged the rest: docs/deployment.md, "What was tried".
 */
const read = (path: string) => readFileSync(projectFile(path), 'utf8')
const settingsFile = read('deploy/hub.env')
const userOfImage = Number(/--uid (\d+)/.exec(read('deploy/Dockerfile'))?.[1])

t.test('the nodes of compose.yaml have valid settings, and stop in time', async (t) => {
  const { services, networks, volumes } = parse(read('deploy/compose.yaml'), { merge: true })
  const [subnet] = networks.hub.ipam.config
  t.equal(subnet.subnet, '192.0.2.0/24')
  for (const name of ['hub-1', 'hub-2']) {
    const node = services[name]
    const config = configOf({ ...environmentOf(settingsFile), ...node.environment })
    t.equal(config.proxyProtocol, true)
    t.equal(new URL(config.redisUrl ?? '').hostname, 'redis')
    t.ok(Number.parseInt(node.stop_grace_period, 10) > 10)
    t.ok(node.ulimits.nofile > 2 * config.maxConnections + 1_000)
    const { ipv4_address: address } = node.networks.hub
    t.match(read('deploy/haproxy.cfg'), `${address}:${config.mqttPort} check port ${config.httpsPort}`)
    t.ok(node.volumes.includes(`${name}:/data`) && name in volumes, 'each node has its own data directory')
  }
  const redis: string = services.redis.command
  for (const setting of ['--appendonly yes', '--appendfsync always', '--maxmemory-policy noeviction'])
    t.match(redis, setting)
})

t.test('the pods of kubernetes.yaml have valid settings, and probes that the hub answers', async (t) => {
  const documents = parseAllDocuments(read('deploy/kubernetes.yaml')).map((one) => one.toJS())
  const byKind = (kind: string) => documents.filter((one) => one.kind === kind)
  const [{ data }] = byKind('ConfigMap')
  const [{ spec }] = byKind('StatefulSet')
  const [pod] = [spec.template.spec]
  const [container] = pod.containers
  const secret = { HUB_REDIS_URL: 'redis://redis.example:6379', HUB_METRICS_TOKEN: 'a-secret-of-prometheus' }
  const own = container.env.find(({ name }: { name: string }) => name === 'HUB_NODE_URL')
  const nodeUrl: string = own.value.replace('$(POD_IP)', '10.1.2.3')
  const config = configOf({ ...data, ...secret, HUB_DATA_DIR: '/data', HUB_NODE_URL: nodeUrl })
  const mounted = container.volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath)
  t.ok(mounted.includes(config.dataDir))
  t.ok(mounted.some((path: string) => config.tlsCert?.startsWith(`${path}/`)))
  t.equal(pod.securityContext.runAsUser, userOfImage)
  t.ok(pod.terminationGracePeriodSeconds > 10 + Number(container.lifecycle.preStop.exec.command[1]))
  t.same(
    container.ports.map((port: { containerPort: number }) => port.containerPort),
    [config.mqttPort, config.httpsPort],
  )
  for (const { spec: service } of byKind('Service')) t.same(service.selector, spec.selector.matchLabels)

  const api = await openApi(t, await startTestHub(t))
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
    const { path, port, scheme } = container[probe].httpGet
    t.match({ port, scheme }, { port: 'https', scheme: 'HTTPS' })
    // As the kubelet asks: by the address of the pod.
    const answer = await api.call('GET', path, { headers: { host: '10.1.2.3:8443' } })
    t.equal(answer.status, 200, `${probe}: ${path}`)
  }
})

function environmentOf(text: string): Record<string, string> {
  const lines = text.matchAll(/^(HUB_\w+)=(.+)$/gm)
  return Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value]))
}

function configOf(env: Record<string, string>) {
  const loaded = loadConfig(env, root)
  if ('problems' in loaded) throw new Error(loaded.problems.join('\n'))
  return loaded.config
}
