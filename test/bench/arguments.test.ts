import t from 'tap'
import { readArguments } from '../../bench/arguments.ts'

const wrong: Record<string, string> = {
  nothing: 'nothing is unknown',
  'latency --wrong 1': 'latency has no --wrong',
  'latency --runs': '--runs needs a value',
  'latency --runs --json': '--runs needs a value',
  'latency --runs 0': '--runs needs numbers from 1 on',
  'latency --rate -1': '--rate needs numbers, with commas',
  'latency --subscribers 3,x': '--subscribers needs numbers, with commas',
  'latency --peers nobody': 'latency has no peer nobody',
  'latency --peers hub,floor': 'latency has no peer floor',
  'workers --peers hub': 'workers has no peer hub',
  'latency --only pipelined-gets': 'latency has no part pipelined-gets',
  'attacks --only nothing': 'attacks has no part nothing',
  'latency --before': '--before needs a value',
  'hazards --before HEAD': 'hazards has no --before',
  'latency --peers mosquitto --before HEAD': '--before is measured beside the hub: it needs --peers hub',
  'latency --node node': '--node needs --before',
}

for (const [args, problem] of Object.entries(wrong))
  t.test(args, async (t) => t.same(readArguments(args.split(' ')), { problem }))

t.test('peers, parts and numbers are those of the scenario', async (t) => {
  t.match(readArguments('latency --peers hub,aedes --subscribers 3,4 --before HEAD --json'.split(' ')), {
    runs: [{ name: 'latency', options: { subscribers: [3, 4], qos: [1] } }],
    peers: ['hub', 'aedes'],
    before: 'HEAD',
    json: true,
  })
  t.match(readArguments('hazards --peers aedes-redis --only wildcard-will'.split(' ')), {
    only: ['wildcard-will'],
  })
  t.same(readArguments(['--help']), { help: true })
})
