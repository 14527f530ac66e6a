/** A ring of islands around a lagoon. */
export function Mark({ size }: { size: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <circle cx="16" cy="16" r="10.5" fill="none" stroke="var(--accent)" strokeWidth="5" strokeDasharray="9 4.2" strokeLinecap="round" />
      <circle cx="16" cy="16" r="3.2" fill="#2dd4bf" />
    </svg>
  )
}
