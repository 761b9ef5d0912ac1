"""Django: models that are registered with an AdminSite of their own."""

import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
    ],
    SECRET_KEY="not a secret",  # nothing is signed
)
django.setup()

# They need the settings.
from django.contrib.admin import AdminSite  # noqa: E402
from django.contrib.admin.models import LogEntry  # noqa: E402
from django.contrib.auth.models import Group, User  # noqa: E402

from everyorder import Scenario, steps, use  # noqa: E402

MODELS = {"User": User, "Group": Group, "LogEntry": LogEntry}


def new_site() -> AdminSite:
    return AdminSite(name="staff")


def register(site: AdminSite, name: str) -> None:
    site.register(MODELS[name])


def unregister(site: AdminSite, name: str) -> None:
    site.unregister(MODELS[name])


def paths(site: AdminSite) -> tuple[str, ...]:
    return tuple(sorted(str(each.pattern) for each in site.get_urls()))


scenario = Scenario(
    *steps("register", [*MODELS], register, undo=unregister),
    uses=[
        use("get_urls", paths),
        use("is_registered(User)", lambda site: site.is_registered(User)),
    ],
    create=new_site,
)
