import { dlPlus } from './dl-plus/dl-plus.ts'
import { icecast } from './icecast/icecast.ts'
import type { Output } from './output.ts'
import { radioplayer } from './radioplayer/radioplayer.ts'
import { rds } from './rds/rds.ts'
import { urlTemplate } from './url-template/url-template.ts'

/** All outputs, in the order of docs/outputs.md. */
export const outputs: readonly Output[] = [icecast, urlTemplate, radioplayer, dlPlus, rds]

/** An output as the operator configures it. Its other settings are those of its driver, and fit the schema of that. */
export interface ConfiguredOutput {
  readonly name: string
  readonly driver: string
  /** Livestream ids, each with what the other side calls it. */
  readonly livestreams: Readonly<Record<string, string>>
  /** The text of the station, when an element has ended without a successor. */
  readonly idle?: string
  /** Milliseconds. */
  readonly delay?: number
  readonly maxAge?: number | 'element'
}
