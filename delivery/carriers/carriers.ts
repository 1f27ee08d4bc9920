import type { Carrier } from './carrier.ts'
import { dynamicLabel } from './dl.ts'
import { icy } from './icy.ts'
import { radiotext } from './rds.ts'

/** All carriers of texts, for the docs and the tests. */
export const carriers: readonly Carrier[] = [icy, radiotext, dynamicLabel]
