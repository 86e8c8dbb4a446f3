"""What the made-up installations do in 26 weeks. The seed is for made-up answers: a real report never has one."""

import numpy as np

WEEKS = 26
DATABASES = ["sqlite", "postgresql", "mysql", "mariadb", "other"]
USERS = ["to 5", "to 20", "to 100", "to 500", "to 2000", "more"]
VERSIONS = ["4.0", "4.1", "4.2", "4.3", "older"]
FEATURES = ["ldap", "s3", "webhooks", "scim", "search", "themes"]
RELEASED = {1: 5, 2: 13, 3: 21}  # the week of 4.1, of 4.2 and of 4.3
ANSWERS = {
    "database": DATABASES,
    "users": USERS,
    "version": VERSIONS,
    "features": FEATURES,
    "importer": ["no", "yes"],
}
MEMOIZED, QUARTERS = ("database", "users", "version"), (0, 13)
SMALL, LARGE = [0.62, 0.2, 0.1, 0.06, 0.02], [0.08, 0.7, 0.12, 0.08, 0.02]


class Truth:
    """The answers of `size` installations, by week; -1 or no row where telemetry is off."""

    def __init__(self, size, seed=49):
        draw = np.random.default_rng(seed)
        users = draw.choice(6, size, p=[0.44, 0.27, 0.16, 0.08, 0.04, 0.01])
        large = users >= 3
        database = np.where(large, draw.choice(5, size, p=LARGE), draw.choice(5, size, p=SMALL))
        version = draw.choice([0, 4], size, p=[0.8, 0.2])
        eager = draw.choice([0.35, 0.08, 0.0], size, p=[0.4, 0.45, 0.15])  # the chance to upgrade in a week
        self.size, self.on = size, np.empty((WEEKS, size), bool)
        self.database, self.users, self.version = (np.empty((WEEKS, size), int) for _ in range(3))
        on = np.ones(size, bool)
        for week in range(WEEKS):
            users = np.minimum(users + (draw.random(size) < 0.006), 5)
            database = np.where((database == 0) & (draw.random(size) < 0.004), 1, database)
            newest = max([0, *(each for each, since in RELEASED.items() if week + 1 >= since)])
            version = np.where(draw.random(size) < eager, newest, version)
            if week:
                on &= draw.random(size) >= np.where(large, 0.006, 0.002)  # an administrator turns telemetry off
            self.database[week], self.users[week], self.version[week], self.on[week] = database, users, version, on
        likely = np.where(large[:, None], [0.75, 0.5, 0.4, 0.3, 0.6, 0.2], [0.08, 0.15, 0.2, 0.02, 0.3, 0.35])
        self.features = draw.random((size, 6)) < likely
        self.importer = draw.random((WEEKS, size)) < np.linspace(0.06, 0.12, WEEKS)[:, None]
        self.turn = draw.integers(0, WEEKS, size)  # the one week in which an installation reports on the importer
        self.lost = draw.random(size) < 0.005  # the file with the secret is lost in week 14, and the name is not
        self.installations = [draw.bytes(16).hex() for _ in range(size)]
        first = [draw.bytes(32) for _ in range(size)]
        self._secrets = first, [draw.bytes(32) if lost else one for lost, one in zip(self.lost, first, strict=True)]

    def secrets(self, week):
        """The secret of each installation in a week, counted from 0."""
        return self._secrets[week >= 13]

    def due(self, metric, week):
        """The installations that report on a metric in a week: the calendar and their turn decide, and no answer."""
        asked = self.turn == week if metric == "importer" else metric in MEMOIZED or week in QUARTERS
        return np.flatnonzero(self.on[week] & asked)

    def answers(self, metric, week, rows):
        """The numbers of the answers; for features, a row of ones and zeros for each installation."""
        known = getattr(self, metric)
        return (known if metric == "features" else known[week])[rows].astype(int)
