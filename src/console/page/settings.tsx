/** Settings of whoever is signed in: name, ways to sign in, sessions. */
import { useText } from "../language.tsx";
import { PageHead } from "../ui/card.tsx";
import { PasswordCard } from "../settings/password-card.tsx";
import { PhoneCard } from "../settings/phone-card.tsx";
import { ProfileCard } from "../settings/profile-card.tsx";
import { SessionsCard } from "../settings/sessions-card.tsx";
import { TotpCard } from "../settings/totp-card.tsx";

/** The page. */
export function SettingsPage() {
  const { settings } = useText();
  return (
    <>
      <PageHead title={settings.title} hint={settings.hint} />
      <div className="flex flex-col gap-6">
        <div className="grid grid-cols-1 items-start gap-6 lg:grid-cols-2">
          <ProfileCard />
          <div className="flex flex-col gap-6">
            <PhoneCard />
            <PasswordCard />
            <TotpCard />
          </div>
        </div>
        <SessionsCard />
      </div>
    </>
  );
}
