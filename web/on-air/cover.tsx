import { useSignal } from '@preact/signals'
import { hueOf, initialsOf } from './words.ts'

/** A cover, or the initials of the livestream if no cover can be loaded. */
export function Cover({ url, name, id }: { url: string | undefined; name: string; id: string }) {
  const failed = useSignal<string | undefined>(undefined)
  const isShown = url !== undefined && failed.value !== url
  return (
    <div class="cover" style={{ '--hue': hueOf(id) }} aria-hidden="true">
      <span>{initialsOf(name)}</span>
      {isShown && (
        <img
          key={url}
          src={url}
          alt=""
          loading="lazy"
          decoding="async"
          referrerpolicy="no-referrer"
          onError={() => {
            failed.value = url
          }}
        />
      )}
    </div>
  )
}
