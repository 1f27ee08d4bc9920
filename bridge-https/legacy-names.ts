import { isLivestreamUrn } from '../event/format.ts'

export type LegacyNames = ReturnType<typeof createLegacyNames>

/** The names that topics and subscriptions have in the HTTPS API (service.md §2.8). */
export function createLegacyNames({ stage, project }: { stage: string; project: string }) {
  const prefix = `de.org.hub.${stage}.`
  return {
    topicName,
    topicPath: (livestreamId: string) => `projects/${project}/topics/${topicName(livestreamId)}`,
    subscriptionPath: (name: string) => `projects/${project}/subscriptions/${name}`,

    /**
     * The livestream that a topic name stands for. Undefined: no livestream on this stage (`HUB_STAGE`) has that name.
     * Topic names contain `%3A`. Some clients encode the percent signs once more in a path, others do not. The router
     * decodes a path once, so `name` has `%3A` or `:` here.
     */
    livestreamOf(name: string): string | undefined {
      if (!name.startsWith(prefix)) return undefined
      const urn = name.slice(prefix.length).replace(/%3a/gi, ':')
      return isLivestreamUrn(urn) ? urn : undefined
    },
  }

  function topicName(livestreamId: string): string {
    return `${prefix}${encodeURIComponent(livestreamId)}`
  }
}
