/**
 * All reasons to refuse a feed: the last good one then stays (design.md §6). `force`: whether `hubctl feed refresh
 * --force` takes the feed all the same.
 */
export const feedRefusals = {
  source: { sentence: 'the source cannot be read, or its answer is no feed', force: false },
  'not-modified': { sentence: 'the source answered 304, but was not asked for changes', force: false },
  'too-large': { sentence: 'the feed has more than 64 MiB', force: false },
  encoding: { sentence: 'the feed is not UTF-8; a byte order mark is skipped', force: false },
  json: { sentence: 'the feed is not JSON', force: false },
  text: { sentence: 'a text of the feed has an escape that is half a character', force: false },
  shape: {
    sentence: 'there are no `items`, or one lacks a proper `id`, `externalId`, publisher or institution',
    force: false,
  },
  duplicate: { sentence: 'an `id` is listed twice', force: false },
  partial: {
    sentence:
      'the feed says that it is not whole: `totalPageCount` above 1, `totalItemCount` above its items, or a header `Link` with `rel="next"`',
    force: false,
  },
  'too-many': { sentence: 'the feed has more than 50,000 livestreams', force: false },
  shrink: { sentence: 'the feed has lost more than 20 % of its livestreams', force: true },
  growth: { sentence: 'the feed has grown by more than 50 % and more than 20 livestreams', force: true },
  canary: { sentence: 'a livestream of `feedCanaries` is missing', force: true },
  institution: {
    sentence: 'the institution of a connected publisher is missing; taken at the fourth refresh',
    force: true,
  },
  unfinished: { sentence: 'checking the feed took too much memory or time', force: false },
  store: { sentence: 'the feed could not be stored', force: false },
} satisfies Record<string, { sentence: string; force: boolean }>

export type FeedReason = keyof typeof feedRefusals

export const feedReasons = Object.keys(feedRefusals) as FeedReason[]

/** Why a feed was refused. `problem` says it of this feed, in one line. */
export interface FeedProblem {
  reason: FeedReason
  problem: string
}

/** Refuses a feed. Says how to take it all the same, if that is possible. */
export function refuse(reason: FeedReason, detail: string): FeedProblem {
  const way = feedRefusals[reason].force ? '; feed refresh --force takes it anyway' : ''
  return { reason, problem: detail + way }
}

/** A refusal on its way through code that reads. */
export class FeedRefused extends Error {
  readonly refused: FeedProblem
  constructor(refused: FeedProblem) {
    super(refused.problem)
    this.refused = refused
  }
}
