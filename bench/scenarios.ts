import type { Scenario } from './scenario.ts'
import { attacks } from './scenarios/attacks.ts'
import { client } from './scenarios/client.ts'
import { cold } from './scenarios/cold.ts'
import { connect } from './scenarios/connect.ts'
import { fanout } from './scenarios/fanout.ts'
import { hazards } from './scenarios/hazards.ts'
import { idle } from './scenarios/idle.ts'
import { ingest } from './scenarios/ingest.ts'
import { latency } from './scenarios/latency.ts'
import { nodes } from './scenarios/nodes.ts'
import { paused } from './scenarios/paused.ts'
import { post } from './scenarios/post.ts'
import { push } from './scenarios/push.ts'
import { retained } from './scenarios/retained.ts'
import { scale } from './scenarios/scale.ts'
import { sessions } from './scenarios/sessions.ts'
import { slowDisk } from './scenarios/slow-disk.ts'
import { start } from './scenarios/start.ts'
import { streams } from './scenarios/streams.ts'
import { targets } from './scenarios/targets.ts'
import { workers } from './scenarios/workers.ts'

/** The scenarios by their names in `npm run bench -- NAME …`. Without a name, all run. */
export const scenarios: Record<string, Scenario> = {
  latency,
  cold,
  fanout,
  workers,
  nodes,
  scale,
  ingest,
  connect,
  idle,
  retained,
  post,
  push,
  paused,
  targets,
  'slow-disk': slowDisk,
  sessions,
  start,
  streams,
  attacks,
  hazards,
  client,
}
