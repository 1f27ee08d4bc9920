/** A goal for the hub, and the scenario of `npm run bench` whose output shows it. */
interface Goal {
  /** What is compared. */
  row: string
  goal: string
  /** The figure that was measured last. */
  measured: string
  /** The arguments of `npm run bench --`. `COMMIT` stands for the commit before. */
  command: string
}

/** What the hub is measured by. */
export const goals: readonly Goal[] = [
  {
    row: 'ingest ÷ the commit before',
    goal: 'events/s ≥ 2.0, CPU ≤ 0.5, p99 ≤ 0.5',
    measured:
      '1.09 to 1.19, 0.81 to 0.84, 0.72 to 0.79 beside f3d81b54, with --events 60000 1.17 to 1.24, 0.73 to 0.82, 0.86 to 0.95 (1.01, 0.97, 0.89)',
    command: 'ingest --publishers 10 --peers hub,floor,aedes --before COMMIT',
  },
  {
    row: 'ingest ÷ floor',
    goal: 'events/s ≥ 0.8, CPU ≤ 1.3, p99 ≤ 1.3',
    measured: '0.28 to 0.30, 4.7 to 5.0, 2.6 to 3.4 (0.24, 6.9, 4.7)',
    command: 'ingest --publishers 10 --peers hub,floor,aedes --before COMMIT',
  },
  {
    row: 'ingest ÷ plain Aedes',
    goal: 'hoped for: events/s ≥ 1.0, CPU ≤ 1.1',
    measured: '0.53 and 0.56, 2.0 and 1.9 (0.46, 2.3)',
    command: 'ingest --publishers 10 --peers hub,floor,aedes --before COMMIT',
  },
  {
    row: 'open loop right after the start ÷ warm',
    goal: 'p99 until PUBACK ≤ 1.5, nothing lost',
    measured: '1.61, 1.99, 2.20, 2.43, 2.81 (3.45, 4.54), nothing lost',
    command: 'cold --only open-loop --peers hub',
  },
  {
    row: 'latency right after the start ÷ Mosquitto + validator',
    goal: 'p50 ≤ 1.1, p99 ≤ 1.0',
    measured: '10 subscribers 0.94, 0.99; 100: 1.05, 1.03',
    command: 'cold --only latency --peers hub,mosquitto',
  },
  {
    row: 'delivery at QoS 0 ÷ bare sockets',
    goal: 'CPU ≤ 1.10',
    measured: '1.08 to 1.39, last 1.17 (1.13)',
    command: 'fanout --subscribers 1000 --peers hub,bare,bare-qos1',
  },
  {
    row: 'delivery at QoS 1 ÷ bare sockets that read PUBACKs',
    goal: 'CPU ≤ 1.15',
    measured: '1.12 to 1.29, last 1.13 (1.15)',
    command: 'fanout --subscribers 1000 --peers hub,bare,bare-qos1',
  },
  {
    row: 'delivery with two workers ÷ one',
    goal: 'deliveries per CPU second ≥ 0.9',
    measured: '0.99 (0.92)',
    command: 'workers',
  },
  {
    row: 'an event, for a node without subscribers of it',
    goal: 'CPU ≤ 100 µs',
    measured: '97, 96, 63 µs (136, 155)',
    command: 'nodes',
  },
  {
    row: '10,000 retained values ÷ Mosquitto',
    goal: 'time ≤ 1.5',
    measured: '0.76 at QoS 0, 0.96 at QoS 1 (1.00, 1.43)',
    command: 'retained --peers hub,mosquitto',
  },
  {
    row: 'connect, full and resumed ÷ bare sockets',
    goal: 'CPU ≤ 1.25',
    measured: '1.58 and 1.73, 1.80 and 1.96, 2.03 and 1.74, 2.17 and 1.87 (1.91 and 1.29, 2.06 and 1.64)',
    command: 'connect --subscribers 1000 --peers hub,bare',
  },
  {
    row: 'a healthy pair while 2,500 persistent sessions return',
    goal: 'p99 ≤ 220 ms',
    measured: '27 to 80 ms (met)',
    command: 'sessions --only crash --runs 5 --peers hub',
  },
  {
    row: '`POST /events` ÷ bare Fastify',
    goal: 'events/s ≥ 0.7',
    measured: '0.25 to 0.29 (0.22)',
    command: 'post --peers hub,bare',
  },
  {
    row: 'webhooks ÷ bare client',
    goal: 'webhooks/s ≥ 0.8',
    measured: '0.71, 0.74; one after the other 0.71 to 1.03 (0.77 and 0.81)',
    command: 'push --peers hub,bare',
  },
  {
    row: 'an event with 1,000 paused webhooks of 20 institutions ÷ with none',
    goal: 'CPU ≤ 4, bytes of the store ≤ 10',
    measured: 'met',
    command: 'paused',
  },
  {
    row: 'memory of an idle connection ÷ bare sockets',
    goal: '≤ 0.95',
    measured: '0.78 (0.96 to 1.00)',
    command: 'idle --peers hub,bare',
  },
  {
    row: 'start to `hub ready`; `hubctl --version`',
    goal: '≤ 1.2 s; ≤ 0.25 s CPU',
    measured: '0.4 s; 0.09 s CPU (met; 0.16)',
    command: 'start',
  },
  {
    row: 'a disk whose syncs take 300 ms longer',
    goal: 'p99 to clean sessions ≤ 220 ms',
    measured: '19 ms',
    command: 'slow-disk',
  },
]
