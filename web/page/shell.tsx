import './base.css'
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { currentPath } from './location.ts'
import { LogIn } from './log-in.tsx'
import { logOut, mustLogIn, offerLogIn, resumeProblem, user } from './session.ts'

/** The frame of every page: its head, and the log-in form where needed. */
export function Shell(props: {
  title: string
  /** The address that the title in the head links to. */
  home?: string
  /** The permission that a user of the page needs. */
  need?: string
  /** Elements in the head, beside the title. */
  tools?: ComponentChildren
  children: ComponentChildren
}) {
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="head">
        <a class="brand" href={props.home ?? '/'}>
          <Mark />
          <span>{props.title}</span>
        </a>
        <div class="tools">{props.tools}</div>
        <Account />
      </header>
      <main id="main" tabIndex={-1}>
        {resumeProblem.value !== '' && <p class="problem">{resumeProblem.value}</p>}
        {mustLogIn.value ? <LogIn need={props.need ?? 'subscribe'} /> : props.children}
      </main>
    </>
  )
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" class="mark">
      <path d="M10.6 21.4a7.6 7.6 0 0 1 0-10.8M21.4 10.6a7.6 7.6 0 0 1 0 10.8" />
      <path d="M6.4 25.6a13.6 13.6 0 0 1 0-19.2M25.6 6.4a13.6 13.6 0 0 1 0 19.2" opacity=".45" />
      <circle cx="16" cy="16" r="3" />
    </svg>
  )
}

function Account() {
  const who = user.value
  const problem = useSignal<string | undefined>(undefined)
  const menu = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    if (menu.current) menu.current.open = false
  }, [currentPath.value])
  if (who === undefined || (who === null && mustLogIn.value)) return null
  if (who === null) {
    return (
      <button type="button" class="quiet" onClick={offerLogIn}>
        Log in
      </button>
    )
  }
  return (
    <details
      ref={menu}
      class="account"
      onKeyDown={({ key, currentTarget }) => {
        if (key !== 'Escape' || !currentTarget.open) return
        currentTarget.open = false
        currentTarget.querySelector('summary')?.focus()
      }}
    >
      <summary aria-label={`Logged in as ${who.email}`}>
        <span aria-hidden="true">{who.email.slice(0, 1).toUpperCase()}</span>
      </summary>
      <div class="menu">
        <p>{who.email}</p>
        <button
          type="button"
          onClick={async () => {
            problem.value = await logOut()
            if (problem.value === undefined) location.reload()
          }}
        >
          Log out
        </button>
        <p class="problem" role="alert">
          {problem.value}
        </p>
      </div>
    </details>
  )
}
