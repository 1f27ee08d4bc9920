import { killedAfterPuback, pubackWithoutStore, qos2Lost } from './cases/acknowledgements.ts'
import { olderReplacesNewer, overtaken, qosAboveGranted, retainedCleared } from './cases/delivery.ts'
import { keptForFrozenReader, memoryBeforeLogIn } from './cases/memory.ts'
import {
  clientIdsCollide,
  malformedConnects,
  malformedFilters,
  malformedTopics,
  violationsAnswered,
} from './cases/packets.ts'
import { newestHeldBack, outdatedDelivered, queueOverwritten, queueWithoutBound } from './cases/queues.ts'
import {
  againWithoutDup,
  deniedFilterDelivered,
  lockedOut,
  sessionDenied,
  sessionsWithoutBound,
  takenByAnother,
} from './cases/sessions.ts'
import { commandsPerSession, lostWithConnection, storeErrorEndsProcess } from './cases/stores.ts'
import { forbiddenWill, wildcardWill } from './cases/wills.ts'
import type { Hazard } from './hazard.ts'

/** The hazards by name. Each name says how a broker fails. */
export const hazards = {
  'acknowledged-then-killed': killedAfterPuback,
  'acknowledged-without-store': pubackWithoutStore,
  'qos-2-lost': qos2Lost,
  'live-message-overtaken': overtaken,
  'lost-with-connection': lostWithConnection,
  'store-error-ends-process': storeErrorEndsProcess,
  'commands-per-session': commandsPerSession,
  'queue-overwritten': queueOverwritten,
  'queue-without-bound': queueWithoutBound,
  'newest-held-back': newestHeldBack,
  'outdated-delivered': outdatedDelivered,
  'older-replaces-newer': olderReplacesNewer,
  'denied-filter-delivered': deniedFilterDelivered,
  'session-locked-out': lockedOut,
  'session-taken-by-another': takenByAnother,
  'sessions-without-bound': sessionsWithoutBound,
  'session-denied': sessionDenied,
  'again-without-dup': againWithoutDup,
  'qos-above-granted': qosAboveGranted,
  'wildcard-will': wildcardWill,
  'forbidden-will': forbiddenWill,
  'retained-cleared': retainedCleared,
  'malformed-connects': malformedConnects,
  'malformed-filters': malformedFilters,
  'malformed-topics': malformedTopics,
  'client-ids-collide': clientIdsCollide,
  'violations-answered': violationsAnswered,
  'memory-before-log-in': memoryBeforeLogIn,
  'kept-for-frozen-reader': keptForFrozenReader,
} satisfies Record<string, Hazard>
