"""django-oauth-toolkit in a Django project of one file, as its tutorial says: https://django-oauth-toolkit.readthedocs.io"""
import json
import sys

import django
from django.conf import settings
from django.core.management import call_command
from django.http import JsonResponse
from django.urls import include, path

place = json.loads(sys.argv[1])
LOGIN = '<form method="post">{% csrf_token %}{{ form }}<button>Log in</button></form>'

settings.configure(
    DEBUG=False,
    SECRET_KEY='key of the tests',
    ALLOWED_HOSTS=['127.0.0.1'],
    ROOT_URLCONF=__name__,
    DEFAULT_AUTO_FIELD='django.db.models.BigAutoField',
    DATABASES={'default': {
        'ENGINE': 'django.db.backends.sqlite3',
        'NAME': place['folder'] + '/db.sqlite3',
        'OPTIONS': {'timeout': 30},
    }},
    INSTALLED_APPS=[
        'django.contrib.auth', 'django.contrib.contenttypes', 'django.contrib.sessions', 'django.contrib.staticfiles',
        'oauth2_provider',
    ],
    STATIC_URL='/static/',
    MIDDLEWARE=[
        'django.contrib.sessions.middleware.SessionMiddleware',
        'django.middleware.csrf.CsrfViewMiddleware',
        'django.contrib.auth.middleware.AuthenticationMiddleware',
    ],
    TEMPLATES=[{
        'BACKEND': 'django.template.backends.django.DjangoTemplates',
        'OPTIONS': {
            'context_processors': ['django.template.context_processors.request'],
            'loaders': [
                ('django.template.loaders.locmem.Loader', {'registration/login.html': LOGIN}),
                'django.template.loaders.app_directories.Loader',
            ],
        },
    }],
    OAUTH2_PROVIDER={'SCOPES': {'read': 'Read scope'}},
)
django.setup()

# Models can be imported now.
from django.contrib.auth.models import User  # noqa: E402
from django.contrib.auth.views import LoginView  # noqa: E402
from oauth2_provider.decorators import protected_resource  # noqa: E402
from oauth2_provider.models import Application  # noqa: E402


@protected_resource()
def me(request):
    return JsonResponse({'id': request.resource_owner.pk})


urlpatterns = [
    path('accounts/login/', LoginView.as_view()),
    path('o/', include('oauth2_provider.urls', namespace='oauth2_provider')),
    path('me', me),
]

call_command('migrate', verbosity=0)
if not Application.objects.exists():
    for user in place['users']:
        User.objects.create_user(user['name'], password=user['password'])
    client = place['client']
    Application.objects.create(
        name='Application', client_id=client['id'], client_secret=client['secret'], redirect_uris=client['redirectUri'],
        client_type='confidential', authorization_grant_type='authorization-code',
    )
call_command('runserver', f"127.0.0.1:{place['port']}", use_reloader=False)
